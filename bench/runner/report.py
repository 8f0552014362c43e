"""Results as Markdown, in the form of docs/performance.md."""
import statistics

from runner.benchmarks import Benchmark, Table
from runner.compare import Change, compare
from runner.figure import Series, rule_of
from runner.measure import Results

ASPECT = "; "  # between what was measured and what about it, in the name of a figure


def number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cell(series: Series | None) -> str:
    """The median and, of several runs, the range."""
    if series is None:
        return ""
    text = number(statistics.median(series.values))
    low, high = number(min(series.values)), number(max(series.values))
    text = text if low == high else f"{text} ({low} to {high})"
    return f"{text} {series.unit}".strip()


def rows(head: list[str], lines: list[list[str]]) -> str:
    table = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in table)


def show_machine(machine: dict, runs: int) -> str:
    return (f"{machine['cores']} cores ({machine['processor']}), Linux {machine['kernel']}; "
            + ("one run" if runs == 1 else f"median and range of {runs} runs in turn") + "\n")


def show_table(table: Table, benchmarks: list[Benchmark], results: Results) -> str:
    columns = [results[benchmark.name] for benchmark in benchmarks]
    loads = [f"{min(column.loads):.1f} to {max(column.loads):.1f}" for column in columns]
    names = dict.fromkeys(name for column in columns for name in column.figures)
    for column in columns:
        for name, series in column.figures.items():
            rule_of(table.rules, name, series.unit)  # raises when it is not declared
    if any(ASPECT in name for name in names):
        text = rows(*by_aspect(columns[0].figures)) + f"\nLoad of the machine: {loads[0]}.\n"
    else:
        lines = [[name, *(cell(column.figures.get(name)) for column in columns)] for name in names]
        lines.append(["load of the machine, before and after", *loads])
        text = rows(["", *(benchmark.column for benchmark in benchmarks)], lines)
    return f"## {table.title}\n\n" + text


def by_aspect(figures: dict[str, Series]) -> tuple[list[str], list[list[str]]]:
    """The head and the lines of a table of one benchmark, whose figures have names such as "nodepool list; CPU"."""
    parts = {name: name.split(ASPECT, 1) for name in figures}
    subjects = dict.fromkeys(subject for subject, _ in parts.values())
    aspects = dict.fromkeys(aspect for _, aspect in parts.values())
    lines = [[subject, *(cell(figures.get(f"{subject}{ASPECT}{aspect}")) for aspect in aspects)] for subject in subjects]
    return ["", *aspects], lines


def verdict(change: Change) -> str:
    if not (change.is_worse or change.is_better):
        return ""
    word = "worse" if change.is_worse else "better"
    return f"{word}, within the spread of the runs" if change.is_within_spread else word


def show_changes(table: Table, benchmark: Benchmark, before: Results, after: Results, names: tuple[str, str]) -> tuple[str, list[str]]:
    """The comparison as a table, and a sentence for each regression."""
    title = f"### {table.title}" + (f": {benchmark.column}" if benchmark.column else "") + f" (`{benchmark.name}`)\n\n"
    if benchmark.name not in before:
        return title + f"Not in {names[0]}.\n", []
    changes = compare(table.rules, before[benchmark.name], after[benchmark.name])
    if not changes:
        return title + "Measured with other sizes, or nothing in common.\n", []
    lines = [[change.figure, f"{number(change.before)} {change.unit}".strip(), f"{number(change.after)} {change.unit}".strip(),
              "" if change.ratio is None else f"{change.ratio:.2f}", verdict(change)] for change in changes]
    regressions = [f"{benchmark.name}: {change.figure}: {number(change.before)} before, {number(change.after)} now "
                   f"{change.unit}".strip() for change in changes if change.is_regression]
    return title + rows(["", *names, "ratio", ""], lines), regressions
