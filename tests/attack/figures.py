#!/usr/bin/python3
"""The figures of attacks. `figures.py BEFORE AFTER` prints two files of --attack-figures as a table in Markdown."""
import csv
import dataclasses
import math
import pathlib
import sys


@dataclasses.dataclass(frozen=True)
class Figures:
    attack: str
    memory: float  # MiB: the daemon's peak above what it had before
    probe: float   # ms: the longest that a request of the probe took
    stop: float    # s from SIGINT to the end; infinite: it had to be killed, or had crashed before

    def append_to(self, file: pathlib.Path):
        """Adds a line; several processes may do so at once."""
        with file.open("a", newline="") as out:
            csv.writer(out, delimiter="\t").writerow(
                [self.attack, f"{self.memory:.1f}", f"{self.probe:.1f}", f"{self.stop:.3f}"])


def read(file: pathlib.Path) -> dict[str, Figures]:
    """The last figures of each attack."""
    with file.open(newline="") as lines:
        return {row[0]: Figures(row[0], *map(float, row[1:])) for row in csv.reader(lines, delimiter="\t")}


def shown(figures: Figures | None) -> list[str]:
    if figures is None:
        return ["—"] * 3
    stop = "killed" if math.isinf(figures.stop) else f"{figures.stop:.1f} s"
    return [f"{figures.memory:,.0f} MiB", f"{figures.probe:,.0f} ms", stop]


def table(before: dict[str, Figures], after: dict[str, Figures]) -> str:
    lines = ["| attack | memory before | after | longest delay before | after | exit before | after |",
             "|---|---|---|---|---|---|---|"]
    for attack, figures in after.items():
        pairs = zip(shown(before.get(attack)), shown(figures))
        lines.append(f"| {attack} | " + " | ".join(cell for pair in pairs for cell in pair) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(*(read(pathlib.Path(name)) for name in sys.argv[1:3])))
