"""Random changes of the bytes of files, for tests of readers."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SECONDS = float(os.environ.get("ROUNDTRIP_FUZZ_SECONDS", "600"))
"""Time for which each reader is fed with changed files."""

WORDS = (b"\x00", b"\xff", b'"', b",", b"\n", b"\r\n", b"\t", b"nan", b"1e999", b"-0", b"{", b"]")


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content after one to eight changes, which may also cut it."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        if not data:
            break
        place, length = int(rng.integers(len(data))), int(rng.integers(1, 33))
        match rng.integers(8):
            case 0:
                data[place] ^= 1 << int(rng.integers(8))
            case 1:
                data[place] = int(rng.integers(256))
            case 2:
                del data[place : place + length]
            case 3:
                data[place:place] = rng.bytes(length)
            case 4:
                data[place:place] = WORDS[rng.integers(len(WORDS))]
            case 5:  # numbers of lengths and shapes
                data[place : place + 8] = int(2.0 ** rng.uniform(0, 63)).to_bytes(8, "little")
            case 6:
                other = int(rng.integers(len(data)))
                data[place : place + length] = data[other : other + length]
            case _:
                if rng.random() < 0.3:
                    del data[place:]
    return bytes(data)


def until(seconds: float) -> Iterator[int]:
    """Yield 0, 1, 2, ... for so many seconds."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield count
        count += 1


def attempt(call: Callable[[], Any], *refusals: type[Exception]) -> tuple[Any, Exception | None]:
    """Return what the call gives, and the refusal that it raises in place of it."""
    try:
        return call(), None
    except refusals as error:
        return None, error
