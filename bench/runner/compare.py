"""Two results of a benchmark beside each other."""
import dataclasses
import statistics

from runner.figure import Kind, Rule, Series, rule_of
from runner.measure import Result

TOLERANCE = 0.10


@dataclasses.dataclass(frozen=True)
class Change:
    """Of one figure."""
    figure: str
    unit: str
    kind: Kind
    before: float
    after: float
    is_worse: bool = False
    is_better: bool = False
    is_within_spread: bool = False  # by more than the tolerance, and runs of the two overlap

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before else None

    @property
    def is_regression(self) -> bool:
        return self.is_worse and not self.is_within_spread


def compare_series(name: str, rule: Rule, before: Series, after: Series) -> Change:
    old, new = statistics.median(before.values), statistics.median(after.values)
    change = Change(name, after.unit, rule.kind, old, new)
    if rule.kind is Kind.SHOWN:
        return change
    if rule.kind is Kind.COUNT:
        return dataclasses.replace(change, is_worse=new > old + rule.within, is_better=new < old - rule.within)
    low, high = (old, new) if rule.kind is Kind.LOW else (new, old)
    is_worse, is_better = high > low * (1 + TOLERANCE), low > high * (1 + TOLERANCE)
    do_overlap = min(before.values) <= max(after.values) and min(after.values) <= max(before.values)
    return dataclasses.replace(change, is_worse=is_worse, is_better=is_better,
                               is_within_spread=(is_worse or is_better) and do_overlap)


def compare(rules, before: Result, after: Result) -> list[Change]:
    """Of all figures that both have; nothing where they measured different things."""
    if before.words != after.words:
        return []
    return [compare_series(name, rule_of(rules, name, series.unit), before.figures[name], series)
            for name, series in after.figures.items()
            if name in before.figures and before.figures[name].unit == series.unit]
