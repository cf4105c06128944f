"""Files in the form in which the public gets them give the arrays they were made of."""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from roundtrip import datasets
from roundtrip.datasets import arem, bank, casp, cifar10, hepmass, mnist, odds, ypmsd
from roundtrip.datasets.files import FOLDER_VARIABLE

FOLDER = Path(os.getenv(FOLDER_VARIABLE) or ".")
real_files = pytest.mark.skipif(
    not os.getenv(FOLDER_VARIABLE),
    reason=f"{FOLDER_VARIABLE} does not name a folder with the files",
)


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def zip_bytes(members):
    buffer = io.BytesIO()
    write_zip(buffer, members)
    return buffer.getvalue()


def csv_text(rows, separator=","):
    return "\n".join(separator.join(map(repr, row)) for row in rows.tolist()) + "\n"


def assert_same(first, second):
    for name in ("train", "validation", "test"):
        for suffix in ("", "_labels", "_groups"):
            a, b = (getattr(data, name + suffix) for data in (first, second))
            assert (a is None) == (b is None)
            if a is not None:
                assert a.flags.writeable
                assert b.flags.writeable
                assert a.dtype == b.dtype
                assert np.array_equal(a, b)


def compare(load, folder):
    assert_same(load(download=False), load(data_home=folder, download=False))


# AReM

AREM_HEADER = """# Task: {}
# Frequency (Hz): 20
# Clock (millisecond): 250
# Duration (seconds): 120
# Columns: time,avg_rss12,var_rss12,avg_rss13,var_rss13,avg_rss23,var_rss23
"""


def arem_recording(activity, times, X, separator=",", end=""):
    lines = [
        separator.join([str(time), *(f"{value:.2f}" for value in row)]) + end
        for time, row in zip(times.tolist(), X.tolist(), strict=True)
    ]
    return AREM_HEADER.format(activity) + "\n".join(lines) + "\n"


def test_arem_archive(tmp_path, rng):
    members, tables = {}, []
    # Ten comes after two, and the order in the archive doesn't matter.
    for activity, number in (("walking", 10), ("walking", 2), ("bending1", 1)):
        X = rng.integers(0, 5000, size=(5, 6)) / 100
        text = arem_recording(
            activity,
            np.arange(5) * 250,
            X,
            separator=" " if number == 2 else ",",
            end="," if number == 10 else "",
        )
        members[f"AReM/{activity}/dataset{number}.csv"] = text
        tables.insert(0, X)
    members |= {"AReM/bendingType.pdf": "%PDF", "__MACOSX/walking/._dataset2.csv": "junk"}
    write_zip(tmp_path / "AReM.zip", members)
    raw = arem._read_archive(tmp_path / "AReM.zip")
    assert np.array_equal(raw.X, np.concatenate(tables))
    assert raw.activity.tolist() == [0] * 5 + [6] * 10
    assert raw.recording.tolist() == [0] * 5 + [1] * 5 + [2] * 5


@real_files
def test_arem_from_the_whole_archive(tmp_path):
    with np.load(FOLDER / "arem.npz") as data:
        X, y, file_id, times = (data[name] for name in ("X", "y", "file_id", "time_ms"))
        activities = data["label_names"].tolist()
    members, count = {}, dict.fromkeys(activities, 0)
    for recording in range(88):
        rows = file_id == recording
        activity = activities[y[rows][0]]
        count[activity] += 1
        name = f"{activity}/dataset{count[activity]}.csv"
        separator = " " if name == "bending2/dataset4.csv" else ","
        members[name] = arem_recording(activity, times[rows], X[rows], separator)
    write_zip(tmp_path / arem._ARCHIVE, members)
    compare(datasets.load_arem, tmp_path)


# CASP


def casp_csv(rmsd, X):
    rows = np.column_stack([rmsd, X])
    return "RMSD," + ",".join(f"F{number}" for number in range(1, 10)) + "\n" + csv_text(rows)


def write_casp(folder, name, text):
    if name.endswith(".zip"):
        write_zip(folder / name, {"CASP.csv": text})
    else:
        (folder / name).write_text(text)


@pytest.mark.parametrize("name", ["CASP.csv", casp._ARCHIVE])
def test_casp_csv(name, tmp_path, rng):
    X = rng.normal(size=(20, 9)) * 10.0 ** rng.integers(-3, 5, size=9)
    write_casp(tmp_path, name, casp_csv(rng.normal(size=20), X))
    assert np.array_equal(casp._read_csv(tmp_path / name), X)


@real_files
@pytest.mark.parametrize("name", ["CASP.csv", casp._ARCHIVE])
def test_casp_from_the_whole_file(name, tmp_path):
    with np.load(FOLDER / "casp.npz") as data:
        write_casp(tmp_path, name, casp_csv(data["y"], data["X"]))
    compare(datasets.load_casp, tmp_path)


# BANK

BANK_CSV = """\
"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";\
"duration";"campaign";"pdays";"previous";"poutcome";"y"
58;"management";"married";"tertiary";"no";2143;"yes";"no";"unknown";5;"may";261;1;-1;0;"unknown";"no"
33;"technician";"single";"unknown";"no";-2;"yes";"yes";"cellular";6;"apr";76;2;3;1;"failure";"yes"
47;"blue-collar";"married";"unknown";"no";15;"no";"no";"unknown";7;"may";92;1;-1;0;"unknown";"no"
"""
BANK_CODES = [
    [58, 1, 0, 0, 0, 2143, 1, 0, 1, 5, 1, 261, 1, -1, 0, 1, 0],
    [33, 2, 1, 1, 0, -2, 1, 1, 0, 6, 0, 76, 2, 3, 1, 0, 1],
    [47, 0, 0, 1, 0, 15, 0, 0, 1, 7, 1, 92, 1, -1, 0, 1, 0],
]
BANK_PACKAGES = {
    "bank-full.csv": str.encode,
    "bank-full.csv.gz": lambda text: gzip.compress(text.encode(), 1),
    "bank.zip": lambda text: zip_bytes({"bank.csv": "few", "bank-full.csv": text}),
    "bank+marketing.zip": lambda text: zip_bytes(
        {
            "bank-additional.zip": zip_bytes({"bank-additional-full.csv": "other"}),
            "bank.zip": zip_bytes({"bank.csv": "few", "bank-full.csv": text}),
        }
    ),
}


@pytest.mark.parametrize("name", BANK_PACKAGES)
def test_bank_codes(name, tmp_path):
    (tmp_path / name).write_bytes(BANK_PACKAGES[name](BANK_CSV))
    assert bank._read_csv(tmp_path / name).tolist() == BANK_CODES


@real_files
@pytest.mark.parametrize("name", ["bank-full.csv", "bank+marketing.zip"])
def test_bank_from_the_whole_file(name, tmp_path):
    text = gzip.decompress((FOLDER / "bank-full.csv.gz").read_bytes()).decode()
    (tmp_path / name).write_bytes(BANK_PACKAGES[name](text))
    compare(datasets.load_bank, tmp_path)


# YPMSD


@pytest.mark.parametrize(
    "name", ["YearPredictionMSD.txt", "YearPredictionMSD.txt.zip", ypmsd._ARCHIVE]
)
def test_ypmsd(name, tmp_path, rng, monkeypatch):
    X = np.round(rng.normal(size=(100, 90)) * 100, 5)
    text = csv_text(np.column_stack([rng.integers(1922, 2012, size=100), X]))
    if name.endswith(".zip"):
        write_zip(tmp_path / name, {"YearPredictionMSD.txt": text})
    else:
        (tmp_path / name).write_text(text)
    assert np.array_equal(ypmsd._read_text(tmp_path / name), X)

    with pytest.raises(datasets.DatasetDamagedError, match=r"\(515345, 90\) .* got \(100, 90\)"):
        datasets.load_ypmsd(data_home=tmp_path)
    monkeypatch.setattr(ypmsd, "_ROWS", 100)
    data = datasets.load_ypmsd(data_home=tmp_path)
    assert (len(data.train), len(data.validation), len(data.test)) == (81, 9, 10)
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    rows = np.concatenate([data.train, data.validation, data.test])
    assert np.array_equal(rows[np.lexsort(rows.T)], scaled[np.lexsort(scaled.T)])
    assert len(data.columns) == 90
    assert data.latent_dim == 20


# HEPMASS

DISCRETE = [5, 9, 13, 17, 21]  # number of jets and four marks


def hepmass_rows(rng, n_rows):
    """Class and 27 features a row."""
    X = rng.normal(size=(n_rows, 27))
    X[:, DISCRETE] = rng.integers(0, 2, size=(n_rows, 5))
    return np.column_stack([rng.integers(0, 2, size=n_rows), X]).astype(np.float64)


def hepmass_csv(rows, n_names):
    header = ["# label", *(f"f{number}" for number in range(n_names))]
    return ",".join(header) + "\n" + csv_text(rows)


@pytest.mark.parametrize("package", ["plain", "gzip", "zip of gzip"])
def test_hepmass(package, tmp_path, rng, monkeypatch):
    train, test = hepmass_rows(rng, 260), hepmass_rows(rng, 120)
    texts = {
        "1000_train.csv": hepmass_csv(train, 26),  # a name short, as in the public file
        "1000_test.csv": hepmass_csv(test, 27),
    }
    packed = {f"{name}.gz": gzip.compress(text.encode()) for name, text in texts.items()}
    if package == "zip of gzip":
        write_zip(tmp_path / "hepmass.zip", {"all_train.csv.gz": b"", **packed})
    else:
        for name, text in texts.items() if package == "plain" else packed.items():
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / name).write_bytes(content)
    with pytest.raises(datasets.DatasetDamagedError, match="350136 and 174987 rows of class 1"):
        datasets.load_hepmass(data_home=tmp_path)

    monkeypatch.setattr(hepmass, "_TRAIN_LINES", 200)  # only the beginning of a file is used
    monkeypatch.setattr(hepmass, "_TEST_LINES", 100)
    signals = train[:200][train[:200, 0] == 1, 1:27]
    test_signals = test[:100][test[:100, 0] == 1, 1:27]
    monkeypatch.setattr(hepmass, "_TRAIN_SIGNALS", len(signals))
    monkeypatch.setattr(hepmass, "_TEST_SIGNALS", len(test_signals))
    data = datasets.load_hepmass(data_home=tmp_path)
    continuous = [column for column in range(26) if column not in DISCRETE]
    assert data.columns == tuple(f"f{column}" for column in continuous)
    mean, sd = signals.mean(axis=0), signals.std(axis=0, ddof=1)
    rows = np.concatenate([data.train, data.validation])  # in the order of the file
    assert np.allclose(rows, ((signals - mean) / sd)[:, continuous], rtol=0, atol=1e-14)
    assert len(data.validation) == len(signals) // 10
    assert np.allclose(data.test, ((test_signals - mean) / sd)[:, continuous], rtol=0, atol=1e-14)
    assert data.latent_dim == 8


def test_hepmass_sizes_of_the_paper():
    raw = hepmass._Signals(np.arange(350_136.0)[:, None] * np.ones(26), np.zeros((2, 26)))
    data = hepmass._prepare(raw)
    assert (len(data.train), len(data.validation)) == (315_123, 35_013)


# ODDS


@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_odds_arrays(suffix, tmp_path, rng):
    X, y = rng.integers(-5, 5, size=(40, 3)).astype(float), rng.integers(0, 2, size=40)
    path = tmp_path / f"table.{suffix}"
    if suffix == "mat":
        savemat(path, {"X": X, "y": y[:, None].astype(float)})
    else:
        np.savez(path, X=X, y=y)
    table = odds._read(path)
    expected = np.array(sorted(np.column_stack([X, y]).tolist()))
    assert np.array_equal(np.column_stack(table), expected)
    assert table.outlier.dtype == np.int64


@real_files
@pytest.mark.parametrize("suffix", ["npz", "mat"])
@pytest.mark.parametrize(
    "source", [odds._SHUTTLE, odds._MAMMOGRAPHY, odds._FORESTCOVER], ids=lambda s: s.name
)
def test_odds_from_whole_files_in_another_order(source, suffix, tmp_path, rng):
    with np.load(FOLDER / source.files[0]) as data:
        order = rng.permutation(len(data["X"]))
        X, y = data["X"][order].astype(float), data["y"][order].astype(float)
    if suffix == "mat":
        savemat(tmp_path / source.files[2], {"X": X, "y": y[:, None]})
    else:
        np.savez(tmp_path / source.files[1], X=X, y=y)
    compare(getattr(datasets, f"load_{source.name.lower()}"), tmp_path)


# MNIST


def idx(array):
    sizes = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return sizes + array.astype(np.uint8).tobytes()


def write_mnist(folder, arrays, packed=True):
    for name, array in zip(mnist._NAMES, arrays, strict=True):
        content = gzip.compress(idx(array), 1) if packed else idx(array)
        (folder / (name if packed else name.removesuffix(".gz"))).write_bytes(content)


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_originals(packed, tmp_path, rng):
    shapes = [(7, 28, 28), (7,), (4, 28, 28), (4,)]
    arrays = [rng.integers(0, 256, size=shape, dtype=np.uint8) for shape in shapes]
    write_mnist(tmp_path, arrays, packed)
    names = [name if packed else name.removesuffix(".gz") for name in mnist._NAMES]
    raw = mnist._read_originals(*(tmp_path / name for name in names))
    assert all(np.array_equal(a, b) for a, b in zip(raw, arrays, strict=True))


@real_files
def test_mnist_from_the_whole_files(tmp_path):
    with np.load(FOLDER / "mnist.npz") as data:
        write_mnist(tmp_path, [data[name] for name in ("train_x", "train_y", "test_x", "test_y")])
    compare(datasets.load_mnist, tmp_path)


# CIFAR-10


def python_2_pickle(images, labels):
    """A batch as Python 2 pickled it, byte strings and NumPy's old names included."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def number(value):
        return b"J" + struct.pack("<i", value)

    values = images.tobytes()
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNN" + 2 * number(-1) + b"K\x00tb"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01("
        + b"".join(map(number, images.shape))
        + b"t"
        + dtype
        + b"\x89T"
        + struct.pack("<i", len(values))
        + values
        + b"tb"
    )
    label_list = b"](" + b"".join(number(label) for label in labels) + b"e"
    filenames = b"](" + b"".join(text(b"cat.png") for _ in labels) + b"e"
    return (
        b"\x80\x02}("
        + text(b"data")
        + array
        + text(b"labels")
        + label_list
        + text(b"batch_label")
        + text(b"training batch 1 of 5")
        + text(b"filenames")
        + filenames
        + b"u."
    )


def write_tar(path, members):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("write", [python_2_pickle, None], ids=["Python 2", "Python 3"])
def test_cifar10_archive(write, tmp_path, rng, monkeypatch):
    images = rng.integers(0, 256, size=(6, 4, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, size=(6, 4))
    members = {"readme.html": b"<p>", "batches.meta": b"not read"}
    # The order in the archive is not that of the batches.
    for number in (3, 5, 1, 0, 2, 4):
        planes = np.ascontiguousarray(images[number].transpose(0, 3, 1, 2).reshape(4, 3072))
        name = "test_batch" if number == 5 else f"data_batch_{number + 1}"
        batch = {"data": planes, "labels": labels[number].tolist()}
        members[name] = write(planes, batch["labels"]) if write else pickle.dumps(batch, protocol=2)
    path = tmp_path / "cifar-10-python.tar.gz"
    write_tar(path, members)
    raw = cifar10._parse_archive(path)
    assert np.array_equal(raw.train.images, images[:5].reshape(20, 32, 32, 3))
    assert np.array_equal(raw.train.labels, labels[:5].ravel())
    assert np.array_equal(raw.test.images, images[5])
    assert np.array_equal(raw.test.labels, labels[5])

    with pytest.raises(datasets.DatasetDamagedError, match="md5 checksum is not the published one"):
        datasets.load_cifar10(data_home=tmp_path)
    monkeypatch.setattr(cifar10, "_MD5", hashlib.md5(path.read_bytes()).hexdigest())
    monkeypatch.setattr(cifar10, "_VALIDATION_ROWS", 2)
    data = datasets.load_cifar10(data_home=tmp_path)
    assert (len(data.train), len(data.validation), len(data.test)) == (18, 2, 4)
    assert np.array_equal(data.test, images[5])
    assert "subset" not in data.description


def test_cifar10_pickles_run_no_code(tmp_path):
    target = tmp_path / "touched"
    attack = b"\x80\x02cos\nsystem\nU" + bytes([len(f"touch {target}")])
    attack += f"touch {target}".encode() + b"\x85R."
    with pytest.raises(pickle.UnpicklingError, match=r"refers to os\.system"):
        cifar10._parse_batch(attack)
    assert not target.exists()
