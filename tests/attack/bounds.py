"""What an attack may cost others, and how large the attacks are."""
import dataclasses
import functools
import os
import pathlib

# Set by ./test --attack. Otherwise the attacks are large enough to break a daemon without bounds, and no larger.
IS_WHOLE = bool(os.environ.get("NODEPOOL_TEST_ATTACK"))


def scaled(bounded: int, whole: int) -> int:
    """An amount: `whole` with ./test --attack, else `bounded`."""
    return whole if IS_WHOLE else bounded


@dataclasses.dataclass(frozen=True)
class Bounds:
    memory: float = 256  # MiB that the daemon may take at most beside what it had before
    probe: float = 250   # ms that any request of a probe may take
    stop: float = 5      # s from SIGINT to the daemon's end


@functools.cache
def is_sanitized(program: pathlib.Path) -> bool:
    return any(name in program.read_bytes() for name in (b"__asan_init", b"__tsan_init"))


def slowness(program: pathlib.Path) -> float:
    """How many times longer things may take than on an idle machine; the bounds of times are multiplied by it. Attacks of
    full size are measured on a machine that has little else to do; otherwise others' load must not fail a test."""
    busy = min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), 4.0) if IS_WHOLE else 4.0
    return busy * (5 if is_sanitized(program) else 1)


def memory_factor(program: pathlib.Path) -> float:
    return 4 if is_sanitized(program) else 1
