import gzip
import os
import pickle
import stat
import zipfile

import numpy as np
import pandas as pd
import pytest

from roundtrip.data.tables import (
    read_columns,
    read_table,
    write_table,
)
from roundtrip.io.atomic import atomic_write, check_writable
from roundtrip.io.paths import OUTPUT_SUFFIXES, check_output

# Numbers that a reader or writer of fewer than 17 digits would change.
ARRAY = np.array([[0.1 + 0.2, 1e-300, -3.0], [1 / 3, 123456789.123456789, 2.0**60]])
FRAME = pd.DataFrame(ARRAY, columns=["a", "b c", "ü"])


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file of the given name, and give its path."""

    def write(name, content):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.mark.parametrize("suffix", [*OUTPUT_SUFFIXES, ".CSV", ".NPY", ".Tsv.GZ"])
@pytest.mark.parametrize("named", [True, False], ids=["frame", "array"])
def test_every_format_comes_back_bit_for_bit(tmp_path, suffix, named):
    path = tmp_path / f"table{suffix}"
    write_table(FRAME if named else ARRAY, path)
    table = read_table(path)
    np.testing.assert_array_equal(np.asarray(table), ARRAY)
    if suffix.lower() == ".npy" or (not named and suffix != ".parquet"):
        assert isinstance(table, np.ndarray)
    else:
        assert list(table.columns) == (list(FRAME.columns) if named else ["x0", "x1", "x2"])
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy"])
def test_formats_hold_what_their_names_say(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write_table(FRAME, path)
    if suffix == ".npy":
        found = np.load(path)
    elif suffix == ".parquet":
        found = pd.read_parquet(path)
    else:
        found = pd.read_csv(path, sep="\t" if "tsv" in suffix else ",")
    np.testing.assert_allclose(np.asarray(found), ARRAY, rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a,b\n1,2\n", ["a", "b"], [[1, 2]]),
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("-1e3, +.5\n3,4", None, [[-1000, 0.5], [3, 4]]),
        ("1,,nan\n4,5,6\n", None, [[1, np.nan, np.nan], [4, 5, 6]]),
        ("1,b\n1,2\n", ["1", "b"], [[1, 2]]),
        ("1_0,2\n1,2\n", ["1_0", "2"], [[1, 2]]),
        ('"a","b, c"\r\n1,"2"\r\n', ["a", "b, c"], [[1, 2]]),
        (" a , b \n1,2\n", ["a", "b"], [[1, 2]]),
        ("\ufeffa,b\n1,2\n", ["a", "b"], [[1, 2]]),
        ("\ufeff1,2\n", None, [[1, 2]]),
        ("\n\na,b\n\n1,2\n\n", ["a", "b"], [[1, 2]]),
        ("a,b\n1,\nNA,2\n", ["a", "b"], [[1, np.nan], [np.nan, 2]]),
        ("a,b\n,1\n,2\n", ["a", "b"], [[np.nan, 1], [np.nan, 2]]),
        ("a,b\n1,inf\n2,-inf\n", ["a", "b"], [[1, np.inf], [2, -np.inf]]),
        ("a,b\n1,2\n1.5,99999999999999999999\n", ["a", "b"], [[1, 2], [1.5, 1e20]]),
        ("a\n1\n2\n", ["a"], [[1], [2]]),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_text_with_and_without_a_header(write, name, text, names, rows):
    table = read_table(write(name, text))
    np.testing.assert_array_equal(np.asarray(table), np.array(rows, dtype=float))
    assert np.asarray(table).dtype.kind in "if"
    assert (list(table.columns) if names else None) == names
    assert isinstance(table, pd.DataFrame) == (names is not None)


def test_whole_numbers_stay_whole(write):
    table = read_table(write("t.csv", "year,height,empty\n2007,1.5,\n2008,2,\n"))
    assert [type.kind for type in table.dtypes] == ["i", "f", "f"]


def test_types_are_those_of_the_whole_file_not_of_its_beginning(write):
    rows = "".join(f"{i},{i}\n" for i in range(300_000))
    assert read_table(write("t.csv", rows + "1,0.5\n"))[-1].tolist() == [1, 0.5]
    with pytest.raises(ValueError, match="the columns 2 are not numbers"):
        read_table(write("t.csv", rows + "1,x\n"))


def test_columns_are_found_by_name_and_put_in_order(write):
    path = write("t.csv", "name,a,b,a2\nAda,1,2,9\nBob,3,4,9\n")
    table = read_table(path, ["b", "a"])
    assert list(table.columns) == ["b", "a"]
    assert table.to_numpy().tolist() == [[2, 1], [4, 3]]
    with pytest.raises(ValueError, match=r"t\.csv: it lacks c, d; its columns are name, a, b, a2$"):
        read_table(path, ["a", "c", "d"])
    with pytest.raises(ValueError, match="a appear more than once"):
        read_table(path, ["a", "a"])


def test_columns_of_a_nameless_table_are_all_kept(write):
    assert read_table(write("t.csv", "1,2\n"), ["a"]).tolist() == [[1, 2]]


def test_parquet_types_and_index(tmp_path):
    path = tmp_path / "year=2020" / "t.parquet"
    path.parent.mkdir()
    frame = pd.DataFrame(
        {
            "integer": pd.array([1, None], dtype="Int64"),
            "float32": np.array([0.5, np.nan], dtype=np.float32),
            "boolean": [True, False],
            "nothing": [None, None],
        },
        index=[7, 8],
    )
    frame.to_parquet(path)
    table = read_table(path)
    assert list(table.columns) == list(frame.columns)  # neither the index nor "year"
    nan = np.nan
    expected = [[1, 0.5, 1, nan], [nan, nan, 0, nan]]
    np.testing.assert_array_equal(table.astype(float).to_numpy(), expected)
    assert table.dtypes.astype(str).tolist() == ["Int64", "float32", "bool", "object"]


@pytest.mark.parametrize(
    "column",
    [["x", None], pd.to_datetime(["2020", None]), pd.Categorical(["a", "b"])],
    ids=["text", "date", "category"],
)
def test_columns_of_parquet_files_keep_their_types(tmp_path, column):
    frame = pd.DataFrame({"number": [1, 2], "other": column})
    frame.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)


def test_columns_of_text_files_are_numbers_booleans_or_text(write):
    path = write(
        "t.csv",
        "n,flag,word,day,time,code,gap\n"
        "1,true,x,2020-01-01,10:30,007,\n"
        "2,,,2020-02-01,,12,\n"
        "3,false,NA,,11:00,,\n",
    )
    table = read_table(path, text=["code"])
    none = table.astype(object).where(table.notna(), None)
    assert none.to_numpy().tolist() == [
        [1.0, True, "x", "2020-01-01", "10:30", "007", None],
        [2.0, None, None, "2020-02-01", None, "12", None],
        [3.0, False, None, None, "11:00", None, None],
    ]
    assert read_table(path)["code"].dtype == np.float64
    with pytest.raises(ValueError, match=r"\.npy files hold numbers only"):
        write_table(table, path.with_suffix(".npy"))
    write_table(table, path.with_suffix(".tsv"))
    pd.testing.assert_frame_equal(read_table(path.with_suffix(".tsv"), text=["code"]), table)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [({"data": ARRAY}, ARRAY), ({"X": ARRAY, "y": np.ones(2)}, ARRAY)],
)
def test_npz(tmp_path, arrays, expected):
    np.savez(tmp_path / "t.npz", **arrays)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz"), expected)


def test_columns_as_they_are(tmp_path):
    pd.DataFrame({"kind": ["a", "b"], "n": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    assert read_columns(tmp_path / "t.csv", ["n", "kind"]).to_numpy().tolist() == [
        [1, "a"],
        [2, "b"],
    ]
    assert list(read_table(tmp_path / "t.csv", without=["kind"]).columns) == ["n"]
    assert list(read_table(tmp_path / "t.csv", ["n", "kind"], without=["kind"]).columns) == ["n"]


def test_images_come_as_they_are(tmp_path):
    images = np.arange(32, dtype=np.uint8).reshape(2, 4, 4, 1)
    write_table(images, tmp_path / "t.npy")
    again = read_table(tmp_path / "t.npy")
    assert again.dtype == np.uint8
    np.testing.assert_array_equal(again, images)
    with pytest.raises(ValueError, match=r"\.npy"):
        write_table(images, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


def npz(**arrays):
    def create(path):
        np.savez(path, **arrays)

    return create


def pickled(path):
    np.save(path, np.array([["a", {}]], dtype=object), allow_pickle=True)


def huge_header(path):
    np.save(path, np.ones((2, 2)))
    path.write_bytes(path.read_bytes().replace(b"(2, 2), }      ", b"(2, 9999999999)"))


def truncated(name):
    def create(path):
        write_table(
            pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3))), path.with_name(name)
        )
        path.write_bytes(path.with_name(name).read_bytes()[:-2000])

    return create


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("header", ["a\n", "\n\na\n", ""])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_an_empty_line_of_a_single_column_is_a_missing_cell(write, suffix, header, end):
    table = read_table(write(f"t{suffix}", header + "1\n2\n\n\n3" + end))
    np.testing.assert_array_equal(np.asarray(table).ravel(), [1, 2, np.nan, np.nan, 3])
    text = read_table(write(f"t{suffix}", 'a\nx\n\ny\n""\n' + end))
    assert [isinstance(cell, str) for cell in text["a"]] == [True, False, True, False]


def test_missing_cells_of_a_single_column_survive_a_file(tmp_path):
    frame = pd.DataFrame({"a": [np.nan, 1.0, np.nan]})
    write_table(frame, tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), frame)


@pytest.mark.parametrize(
    "text",
    ["2019,2020\n1,2\n3,4\n", "0,1,2\n5.5,6,7\n7,3,9\n", "7,3\n0.5,0.1\n0.3,0.2\n"],
    ids=["years", "numbered", "whole"],
)
def test_a_header_of_numbers_is_read_as_a_row_with_a_warning(write, text):
    path = write("t.csv", text)
    first = text.partition("\n")[0].replace(",", ", ")
    with pytest.warns(UserWarning, match=f"{path}: its first row, {first}, looks like a header"):
        assert len(read_table(path)) == 3


@pytest.mark.parametrize(
    "text", ["1,2,3\n2,3,1\n3,1,2\n", "2019,2020\n2020,2021\n2018,2020\n", "1.5,2\n3,4\n5,6\n"]
)
def test_rows_of_numbers_are_no_headers(write, text):
    assert len(read_table(write("t.csv", text))) == 3


def archive_of_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")


BAD_FILES = {
    "missing": ("t.csv", None, "no such file"),
    "folder": ("t.csv", lambda path: path.mkdir(), "is a folder"),
    "unknown suffix": ("t.xlsx", "1,2\n", r"unknown format: supported are \.csv, .*\.npz"),
    "no suffix": ("csv", "1,2\n", "unknown format"),
    "empty": ("t.csv", "", "is empty"),
    "blank": ("t.csv", "\n\n\n", "is empty"),
    "empty gz": ("t.csv.gz", "", "is empty"),
    "empty npy": ("t.npy", "", "is empty"),
    "empty parquet": ("t.parquet", "", "is empty"),
    "header only": ("t.csv", "a,b\n", "no rows"),
    "short row": ("t.csv", "a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1"),
    "long row": ("t.csv", "1,2\n3,4,5\n", "Row #2: Expected 2 columns, got 3"),
    "header short": ("t.csv", "a,b\n1,2,3\n4,5,6\n", "Expected 2 columns, got 3"),
    "text without names": ("t.csv", "1,2\n3,x\n", "columns 2 are not numbers; give the table a"),
    "semicolons": ("t.csv", "a;b\n1;2\n", "only column is named a;b: separate cells by commas"),
    "repeated name": ("t.csv", "a,b,a\n1,2,3\n", "a appear more than once"),
    "row numbers": ("t.csv", ",a,b\n0,1,2\n", "no name"),
    "not utf-8": ("t.csv", b"\xff\xfe\x00a,b\n1,2\n", "can't read"),
    "text as gz": ("t.tsv.gz", lambda path: path.write_text("1\t2\n"), "(?i)not a gzip"),
    "text as parquet": ("t.parquet", "a,b\n1,2\n", "can't read"),
    "text as npy": ("t.npy", "a,b\n1,2\n", "can't read"),
    "text as npz": ("t.npz", "a,b\n1,2\n", "not an npz archive"),
    "zip as npz": ("t.npz", archive_of_text, "two-dimensional"),
    "truncated parquet": ("t.parquet", truncated("whole.parquet"), "can't read"),
    "truncated npy": ("t.npy", truncated("whole.npy"), "can't read"),
    "truncated gz": ("t.csv.gz", truncated("whole.csv.gz"), "can't read"),
    "impossible npy": ("t.npy", huge_header, "can't read"),
    "pickle": ("t.npy", lambda path: path.write_bytes(pickle.dumps(ARRAY)), "can't read"),
    "objects": ("t.npy", pickled, "allow_pickle=False"),
    "objects in npz": ("t.npz", npz(X=np.array([[{}]], dtype=object)), "allow_pickle=False"),
    "two arrays": ("t.npz", npz(a=ARRAY, b=ARRAY), "one named X, but holds a, b"),
    "no arrays": ("t.npz", npz(), "one named X"),
    "one dimension": ("t.npz", npz(a=np.ones(3)), r"two-dimensional .* shape \(3,\)"),
    "three dimensions": ("t.npz", npz(a=np.ones((3, 2, 2))), "two-dimensional"),
    "strings": ("t.npz", npz(a=np.array([["a"]])), "array of numbers"),
    "complex": ("t.npz", npz(a=np.array([[1j]])), "type complex128"),
    "zero rows": ("t.npz", npz(a=np.ones((0, 3))), "no rows"),
    "zero columns": ("t.npz", npz(a=np.ones((3, 0))), "no columns"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files(tmp_path, write, name, content, message):
    path = tmp_path / name
    if callable(content):
        content(path)
    elif content is not None:
        write(name, content)
    with pytest.raises((ValueError, OSError), match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_a_long_list_of_names_is_cut(write):
    names = ",".join(f"c{i}" for i in range(30))
    with pytest.raises(ValueError, match=r"c0, .*c9 and 20 more$"):
        read_table(write("t.csv", names + "\n" + ",".join(["1"] * 30) + "\n"), ["z"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.npz", "unknown format"),
        ("t.txt", r"supported are \.csv"),
        ("nowhere/t.csv", "the folder .*nowhere doesn't exist"),
        ("file/t.csv", "the folder .*file isn't a folder"),
        ("folder.csv", "is a folder"),
    ],
)
def test_bad_outputs_are_refused_and_nothing_is_left(tmp_path, name, message):
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises((ValueError, OSError), match=message):
        check_output(tmp_path / name)
    with pytest.raises((ValueError, OSError)):
        write_table(ARRAY, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="can't write"):
        check_output(tmp_path / "t.csv")


def test_check_writable_leaves_no_trace(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    check_writable(tmp_path / "old.csv")
    check_writable(tmp_path / "new.csv")
    assert os.listdir(tmp_path) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("old")

    def write_half():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.txt"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(tmp_path, umask):
    previous = os.umask(umask)
    try:
        with atomic_write(tmp_path / "t.txt") as temporary:
            temporary.unlink()
            temporary.touch(0o600)  # as writers do that make a private file of their own
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "t.txt").stat().st_mode) == 0o666 & ~umask


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real" / "t.csv")
    write_table(ARRAY, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert read_table(tmp_path / "real" / "t.csv").shape == (2, 3)


def test_a_device_is_not_replaced():
    with pytest.raises(OSError, match="not a regular file"), atomic_write("/dev/null"):
        pass


LONG = b"y" * 1000 + b"\n"


@pytest.mark.parametrize(
    "parts",
    [
        [b"1" * (1 << 24)] * 4,
        [b"a,b\n1,2\n3,", *[b"1" * (1 << 24)] * 4],
        [b"\n" * (1 << 24)] * 4,
    ],
    ids=["one line", "one cell", "empty lines"],
)
def test_a_small_file_that_unpacks_to_an_endless_row_is_refused(parts, tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
    with pytest.raises(ValueError, match="row is longer than 16 MB"):
        read_table(path)


def test_cells_with_new_lines_may_end_a_block_of_the_reader(tmp_path, monkeypatch):
    monkeypatch.setattr("roundtrip.data.tables.LONGEST_ROW", 1 << 16)
    path = tmp_path / "long.csv"
    path.write_bytes(b"a,b\n" + b'1,"' + LONG + b'z"\n' + b'2,"' + LONG * 2 + b'"\n' * 1)
    frame = read_table(path)
    assert frame["b"].tolist() == [LONG.decode() + "z", 2 * LONG.decode()]
    path.write_bytes(b"a,b\n" + (b'1,"' + LONG * 9 + b'"\n') * 30)
    frame = read_table(path)
    assert len(frame) == 30
    assert (frame["b"] == 9 * LONG.decode()).all()
