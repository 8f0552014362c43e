"""Kinds of figures, and how a benchmark's output is read."""
import dataclasses
import enum
import fnmatch
import json
import pathlib


class Kind(enum.Enum):
    """Which direction is better, and how two values are compared."""
    LOW = "less is better"       # times, memory: medians
    HIGH = "more is better"      # throughput: medians
    COUNT = "counted"            # transactions, calls: exactly, less is better
    SHOWN = "not compared"       # what only describes the run


@dataclasses.dataclass(frozen=True)
class Rule:
    """Of the figures with such names and this unit."""
    names: str  # with * and ?
    unit: str
    kind: Kind
    within: float = 0  # counts that differ by no more are the same: which changes share a transaction depends on the time


@dataclasses.dataclass
class Series:
    """The values of a figure, one of each run."""
    unit: str
    values: list[float]


def rule_of(rules, name: str, unit: str) -> Rule:
    for rule in rules:
        if rule.unit == unit and fnmatch.fnmatchcase(name, rule.names):
            return rule
    raise ValueError(f"the figure {name!r} in {unit!r} is not declared")


def read_lines(file: pathlib.Path) -> dict[str, tuple[float, str]]:
    """Name, value and unit, with tabs between them."""
    found = {}
    for line in file.read_text().splitlines():
        name, value, unit = line.split("\t")
        found[name] = (float(value), unit)
    return found


def read_google(file: pathlib.Path) -> dict[str, tuple[float, str]]:
    """The JSON of Google's benchmark library: CPU time of an iteration."""
    return {entry["name"]: (entry["cpu_time"], entry["time_unit"].replace("us", "µs"))
            for entry in json.loads(file.read_text())["benchmarks"]}
