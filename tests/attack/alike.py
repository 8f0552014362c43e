"""Texts of which std::hash of GCC's library makes the same number.

It is MurmurHash64A with a known seed. From each state on the way, two pairs of blocks of eight bytes lead to the same
next state: the first blocks are any, and one of the second blocks follows from the other three.
"""
import itertools
import random
import string

SEED = 0xC70F6907
FACTOR = 0xC6A4A7935BD1E995
INVERSE = pow(FACTOR, -1, 2**64)
WORD = 2**64 - 1
CHARACTERS = (string.ascii_letters + string.digits + "-_.:,;+=@!$()*[]{}<>|~^#%&").encode()
UNIT = 16  # bytes of a pair of blocks


def mixed(block: bytes) -> int:
    value = int.from_bytes(block, "little") * FACTOR & WORD
    return (value ^ value >> 47) * FACTOR & WORD


def unmixed(value: int) -> bytes:
    value = value * INVERSE & WORD
    return ((value ^ value >> 47) * INVERSE & WORD).to_bytes(8, "little")


def pairs(state: int, choose: random.Random) -> tuple[list[str], int]:
    """Two pairs of blocks that lead to the same state, and that state."""
    while True:
        first, other, second = (bytes(choose.choices(CHARACTERS, k=8)) for _ in range(3))
        after_first, after_other = ((state ^ mixed(block)) * FACTOR & WORD for block in (first, other))
        after = after_first ^ mixed(second)
        last = unmixed(after ^ after_other)
        if all(byte in CHARACTERS for byte in last):
            return [(first + second).decode(), (other + last).decode()], after * FACTOR & WORD


def alike(count: int) -> list[str]:
    """`count` texts, each of 16 bytes for each bit of `count`."""
    choose = random.Random(1)
    units = (count - 1).bit_length()
    state = SEED ^ units * UNIT * FACTOR & WORD
    choices = []
    for _ in range(units):
        choice, state = pairs(state, choose)
        choices.append(choice)
    return list(map("".join, itertools.islice(itertools.product(*choices), count)))
