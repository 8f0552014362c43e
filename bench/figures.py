"""What a benchmark has measured, as bench/run reads it; the same for programs in C++ is bench/figures.h."""
import argparse
import pathlib


class Figures:
    """Prints each figure as a line when it is added; `write` makes the file for bench/run."""

    def __init__(self):
        self.lines: list[str] = []

    @staticmethod
    def add_option(parser: argparse.ArgumentParser):
        parser.add_argument("--figures", type=pathlib.Path,
                            help="write the figures to this file: name, value and unit, with tabs")

    def add(self, name: str, value: float, unit: str = ""):
        print(f"{name:60}{value:14.6g} {unit}", flush=True)
        self.lines.append(f"{name}\t{value:.9g}\t{unit}\n")

    def write(self, file: pathlib.Path | None):
        if file is not None:
            file.write_text("".join(self.lines))
