"""Disks that are full: a small file system where one may be mounted, or a limit on files."""

import resource
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(folder, size="64k"):
    """A file system of this size in a folder, as only the superuser may make one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def no_large_files(limit=4096):
    """No file of this process may have more bytes than the limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
