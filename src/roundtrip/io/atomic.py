"""Atomic writes: a file is either replaced completely or not changed."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, and move the file to `path` if the block succeeds.

    The temporary file is created in the folder of `path`, because a move is atomic only within
    one file system. It has the same suffix and is removed if the block raises. The result has the
    permissions of a new file under the umask. A symbolic link is followed, not replaced.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write.

    Yields
    ------
    pathlib.Path
        The temporary file.

    Raises
    ------
    OSError
        If the folder doesn't exist or isn't writable, or `path` is a folder or a device.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "answer.txt")
    ...     with atomic_write(target) as temporary:
    ...         _ = temporary.write_text("42")
    ...         print(target.exists())
    ...     print(target.read_text(), [file.name for file in Path(folder).iterdir()])
    False
    42 ['answer.txt']
    """
    _check_folder(path)
    target = Path(os.path.realpath(path))
    temporary, mode = _create_beside(target)
    try:
        yield temporary
        # Some writers replace the file they are given by a new one with stricter permissions.
        temporary.chmod(mode)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` that `atomic_write` would raise, before any work is done.

    Examples
    --------
    >>> check_writable("no/such/folder/model.rt")
    Traceback (most recent call last):
        ...
    FileNotFoundError: can't write no/such/folder/model.rt: the folder no/such/folder doesn't exist
    """
    _check_folder(path)
    temporary, _ = _create_beside(Path(os.path.realpath(path)))
    temporary.unlink()


def _check_folder(path: str | os.PathLike[str]) -> None:
    # The message shows the path as the user wrote it, not the absolute one.
    folder = Path(path).parent
    if not folder.is_dir():
        problem = "isn't a folder" if folder.exists() else "doesn't exist"
        raise FileNotFoundError(f"can't write {path}: the folder {folder} {problem}")


def _create_beside(target: Path) -> tuple[Path, int]:
    """Create an empty file next to `target`; return its path and its permission bits."""
    if target.is_dir():
        raise IsADirectoryError(f"can't write {target}: it is a folder, not a file")
    if target.exists() and not target.is_file():  # a move would replace the device itself
        raise OSError(f"can't write {target}: it is not a regular file")
    temporary = target.parent / f".{uuid.uuid4().hex}{target.suffix}"
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except OSError as error:  # name the target: the user does not know the temporary file
        raise type(error)(error.errno, f"can't write: {error.strerror}", str(target)) from None
    try:
        return temporary, os.fstat(descriptor).st_mode & 0o777
    finally:
        os.close(descriptor)
