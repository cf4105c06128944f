"""Where files come from: folder, cache, download; and what happens when something is wrong."""

import gzip
import hashlib
import http.server
import inspect
import re
import socket
import sys
import threading
import urllib.parse

import numpy as np
import pytest

from roundtrip import datasets
from roundtrip.datasets import casp, files, mnist
from roundtrip.datasets.files import FOLDER_VARIABLE, Download, Form, digest, fetch

LOADERS = {name: getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")}
every_loader = pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
CONTENT = b"1,2\n3,4\n"
TABLE = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no folder, and no proxy between the tests and their own server."""
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "cache"
    monkeypatch.setattr(files, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def server(tmp_path):
    """A web server of the folder `server.folder`; `server.requests` are the paths asked for."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            requests.append(urllib.parse.unquote(self.path))
            super().do_GET()

        def log_message(self, *args):
            pass

    requests: list[str] = []
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: Handler(*args, directory=str(folder))
    ) as running:
        running.folder, running.requests = folder, requests
        running.url = f"http://127.0.0.1:{running.server_address[1]}/"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def nowhere():
    """An address at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}/"


def read(path):
    return np.loadtxt(path, delimiter=",")


def check(table):
    if not np.array_equal(table, TABLE):
        raise ValueError("its values are others")


def fetch_toy(url, md5=None, **kwargs):
    options = {"check": check, "data_home": None, "download": True} | kwargs
    return fetch("toy", [Form(("toy.csv",), read)], [Download(f"{url}toy.csv", md5)], **options)


# Folders


def test_folder_before_cache_before_download(tmp_path, cache, nowhere, monkeypatch):
    cache.mkdir()
    (cache / "toy.csv").write_bytes(CONTENT)
    assert np.array_equal(fetch_toy(nowhere), TABLE)

    home = tmp_path / "home"
    home.mkdir()
    assert np.array_equal(fetch_toy(nowhere, data_home=home), TABLE)  # the cache has it
    (home / "toy.csv").write_bytes(b"0,0\n0,0\n")
    with pytest.raises(datasets.DatasetDamagedError, match=r"home/toy\.csv: not the toy data"):
        fetch_toy(nowhere, data_home=str(home))
    monkeypatch.setenv(FOLDER_VARIABLE, str(home))
    with pytest.raises(datasets.DatasetDamagedError, match=r"home/toy\.csv: not the toy data"):
        fetch_toy(nowhere)
    other = tmp_path / "other"
    other.mkdir()
    assert np.array_equal(fetch_toy(nowhere, data_home=other), TABLE)  # before the variable


@every_loader
def test_folder_must_exist(load, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="data_home must be an existing folder, got"):
        load(data_home=tmp_path / "missing")
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError, match=f"variable {FOLDER_VARIABLE} must be an existing"):
        load()


@every_loader
def test_bad_arguments(load, tmp_path):
    for seed in (-1, 0.5, None, "0"):
        with pytest.raises(ValueError, match="random_state must be an integer of at least 0"):
            load(data_home=tmp_path, random_state=seed)
    with pytest.raises(ValueError, match="download must be one of True, False, got 'no'"):
        load(data_home=tmp_path, download="no")
    if "dequantize" in inspect.signature(load).parameters:
        with pytest.raises(ValueError, match="dequantize must be one of True, False, got 'yes'"):
            load(data_home=tmp_path, dequantize="yes")


def test_unknown_split(tmp_path):
    with pytest.raises(ValueError, match="split must be one of 'rows', 'recordings', got 'people'"):
        datasets.load_arem(data_home=tmp_path, split="people")


# What can't be had


@every_loader
def test_message_says_what_to_get_and_where_to_put_it(load, tmp_path):
    with pytest.raises(datasets.DatasetNotFoundError) as caught:
        load(data_home=tmp_path, download=False)
    message = str(caught.value)
    assert "downloading is switched off" in message
    assert re.search(r"Get \S+ from https://\S+", message)
    assert f"put it into {tmp_path}" in message
    assert FOLDER_VARIABLE in message
    assert isinstance(caught.value, FileNotFoundError)


def test_offline(nowhere, cache):
    with pytest.raises(datasets.DatasetNotFoundError) as caught:
        fetch_toy(nowhere)
    message = str(caught.value)
    assert "the download failed (ConnectionError" in message
    assert f"Get toy.csv from {nowhere}toy.csv; put it into {cache}" in message
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("load", [datasets.load_casp, datasets.load_mnist])
def test_loaders_offline(load, nowhere, monkeypatch):
    module = casp if load is datasets.load_casp else mnist
    moved = [Download(nowhere + item.name, item.md5) for item in module._DOWNLOADS]
    monkeypatch.setattr(module, "_DOWNLOADS", moved)
    with pytest.raises(datasets.DatasetNotFoundError, match="the download failed") as caught:
        load()
    assert all(item.url in str(caught.value) for item in moved)


def test_without_pooch(nowhere, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: None)
    message = re.escape("pip install 'roundtrip[datasets]'")
    with pytest.raises(datasets.DatasetNotFoundError, match=message):
        fetch_toy(nowhere)


def test_cache_folder_is_the_users(monkeypatch):
    monkeypatch.undo()
    assert "roundtrip" in str(files.cache_folder())
    monkeypatch.setitem(sys.modules, "pooch", None)  # importing it fails
    assert files.cache_folder() is None


def test_unwritable_cache(server, tmp_path, monkeypatch):
    (server.folder / "toy.csv").write_bytes(CONTENT)
    (tmp_path / "file").touch()
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "file" / "cache")
    with pytest.raises(datasets.DatasetNotFoundError, match="the download failed"):
        fetch_toy(server.url)


# Downloads


@pytest.mark.parametrize("md5", [None, hashlib.md5(CONTENT).hexdigest()])
def test_download_once(md5, server, cache):
    (server.folder / "toy.csv").write_bytes(CONTENT)
    for _ in range(2):
        assert np.array_equal(fetch_toy(server.url, md5), TABLE)
    assert server.requests == ["/toy.csv"]
    assert (cache / "toy.csv").read_bytes() == CONTENT
    assert [path.name for path in cache.iterdir()] == ["toy.csv"]


def test_wrong_checksum_is_not_kept(server, cache):
    (server.folder / "toy.csv").write_bytes(CONTENT)
    with pytest.raises(datasets.DatasetDamagedError, match=r"toy\.csv: .* md5 .* was not kept"):
        fetch_toy(server.url, "0" * 32)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("content", [b"5,6\n7,8\n", b"1,2\n3", b"\x00\xff", b""])
def test_wrong_content_is_not_kept(content, server, cache):
    (server.folder / "toy.csv").write_bytes(content)
    with pytest.raises(datasets.DatasetDamagedError, match=r"toy data as published: .* not kept"):
        fetch_toy(server.url)
    assert list(cache.iterdir()) == []


def test_missing_on_the_server(server, cache):
    with pytest.raises(datasets.DatasetNotFoundError, match="HTTPError: 404"):
        fetch_toy(server.url)
    assert list(cache.iterdir()) == []


def test_broken_connection(cache):
    """A server that promises more than it sends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + CONTENT)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(datasets.DatasetNotFoundError, match="the download failed"):
            fetch_toy(url)
        thread.join()
    assert list(cache.iterdir()) == []


def test_loader_downloads_several_files(server, cache, rng, monkeypatch):
    """MNIST from a server, with a small set in place of the real one."""
    shapes = [(30, 28, 28), (30,), (5, 28, 28), (5,)]
    arrays = [rng.integers(0, 10, size=shape, dtype=np.uint8) for shape in shapes]
    moved = []
    for name, array in zip(mnist._NAMES, arrays, strict=True):
        sizes = np.array(array.shape, dtype=">u4").tobytes()
        content = gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
        (server.folder / name).write_bytes(content)
        moved.append(Download(server.url + name, hashlib.md5(content).hexdigest()))
    monkeypatch.setattr(mnist, "_DOWNLOADS", moved)
    monkeypatch.setattr(mnist, "_SHA256", digest(*arrays))
    monkeypatch.setattr(mnist, "_VALIDATION_ROWS", 10)
    for _ in range(2):
        data = datasets.load_mnist()
        assert np.array_equal(data.test[..., 0], arrays[2])
        assert (len(data.train), len(data.validation)) == (20, 10)
    assert sorted(server.requests) == sorted(f"/{name}" for name in mnist._NAMES)
    assert sorted(path.name for path in cache.iterdir()) == sorted(mnist._NAMES)


# Damaged files


DAMAGED = {
    "cut zip": ("load_arem", "AReM.zip", b"PK\x03\x04 and no more"),
    "cut npz": ("load_arem", "arem.npz", b"PK\x03\x04"),
    "empty": ("load_bank", "bank-full.csv", b""),
    "other table": ("load_bank", "bank-full.csv", b'"age";"job"\n1;"x"\n'),
    "cut gzip": ("load_bank", "bank-full.csv.gz", gzip.compress(b"a" * 1000)[:-10]),
    "few rows": (
        "load_casp",
        "CASP.csv",
        b"RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9\n" + b"1," * 9 + b"2\n",
    ),
    "text": ("load_casp", "casp.npz", b"not a zip"),
    "cut mat": ("load_shuttle", "shuttle.mat", b"MATLAB 5.0"),
    "cut tar": ("load_cifar10", "cifar-10-python.tar.gz", gzip.compress(b"")),
}


@pytest.mark.parametrize("case", DAMAGED.values(), ids=DAMAGED)
def test_damaged_file_is_named(case, tmp_path):
    load, name, content = case
    (tmp_path / name).write_bytes(content)
    with pytest.raises(datasets.DatasetDamagedError) as caught:
        LOADERS[load](data_home=tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert "https://" in str(caught.value)
    assert (tmp_path / name).exists()  # the user's file is the user's


def test_objects_in_npz_are_refused(tmp_path):
    np.savez(tmp_path / "casp.npz", X=np.array([{}], dtype=object))
    with pytest.raises(datasets.DatasetDamagedError, match="allow_pickle=False"):
        datasets.load_casp(data_home=tmp_path)


def test_one_changed_value_is_noticed(tmp_path):
    X = np.zeros((45_730, 9))
    np.savez(tmp_path / "casp.npz", X=X)
    message = r"values are not the published ones \(shapes \(45730, 9\)\)"
    with pytest.raises(datasets.DatasetDamagedError, match=message):
        datasets.load_casp(data_home=tmp_path)


def test_digest_depends_on_every_value_and_not_on_the_layout(rng):
    X = rng.normal(size=(20, 3))
    changed = X.copy()
    changed[7, 1] = np.nextafter(changed[7, 1], 1)
    assert digest(X) == digest(np.asfortranarray(X))
    assert digest(X) != digest(changed)
    assert digest(X) != digest(X.T)
    assert digest(X, X) != digest(X)
