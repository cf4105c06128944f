"""Atomic writes: a file is either replaced completely or not changed."""

import errno
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a disk that is full or broken, or of a file that may not be so large."""

LEFTOVER_SECONDS = 3600
"""Age from which on a temporary file belongs to a writer that was killed."""


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
        If the folder doesn't exist or isn't writable, `path` is a folder or a device, or the disk
        is full. The message names `path`.

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
    _remove_leftovers(target)
    temporary, mode = _create_beside(target)
    try:
        yield temporary
        # Some writers replace the file they are given by a new one with stricter permissions.
        temporary.chmod(mode)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        # Writers name the temporary file, or none: NumPy even leaves the number of the error out.
        # Errors of a network, which are OSErrors, too, are of classes of their own.
        unnumbered = type(error) is OSError and error.errno is None
        if unnumbered or error.errno in NO_SPACE:
            problem = str(error) if error.errno is None else os.strerror(error.errno)
            raise OSError(error.errno or errno.EIO, f"can't write: {problem}", str(path)) from error
        raise
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


def _start_of_names(target: Path) -> str:
    """Return what the names of all temporary files of `target` begin with."""
    return f".roundtrip-{hashlib.sha256(target.name.encode()).hexdigest()[:16]}-"


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of writers that were killed; younger ones may still be written to."""
    for file in target.parent.glob(f"{_start_of_names(target)}*"):
        try:
            if time.time() - file.stat().st_mtime > LEFTOVER_SECONDS:
                file.unlink()
        except OSError:  # another process was faster, or the file is not ours
            continue


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
    temporary = target.parent / f"{_start_of_names(target)}{uuid.uuid4().hex}{target.suffix}"
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except OSError as error:  # name the target: the user does not know the temporary file
        raise type(error)(error.errno, f"can't write: {error.strerror}", str(target)) from None
    try:
        return temporary, os.fstat(descriptor).st_mode & 0o777
    finally:
        os.close(descriptor)
