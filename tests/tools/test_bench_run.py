"""bench/run: the form of what it prints, comparisons, and that regressions are named."""
import json
import re
import subprocess
import sys

import pytest

from nodepool_helpers import BIN, ROOT

sys.path.insert(0, str(ROOT / "bench"))
from runner import benchmarks, compare, report  # noqa: E402
from runner.figure import Kind, Rule, Series  # noqa: E402
from runner.measure import Result  # noqa: E402

CHOSEN = ["at-once", "record-bench"]
TRANSACTIONS = "ZooKeeper transactions per request, launcher"
RATE = "requests per second"
MEMORY = "launcher peak memory"


def bench(*words, runs=1) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "bench/run", *map(str, words), "--small", "--runs", str(runs)], capture_output=True, text=True,
                          timeout=300)


def assert_is_table(text: str, title: str, rows: list[str]):
    """A table of Markdown under the title, with these rows, all of the same width."""
    section = text.split(f"## {title}\n\n", 1)[1].split("\n\n", 1)[0].splitlines()
    assert set(section[1]) <= set("| -")
    assert len({line.count("|") for line in section}) == 1, section
    for row in rows:
        assert any(line.startswith(f"| {row} |") for line in section), (row, section)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a run, and what it printed."""
    assert (BIN / "load_bench").exists(), "cmake --build --preset release --target benchmarks"
    file = tmp_path_factory.mktemp("bench") / "figures.json"
    done = bench(*CHOSEN, "--save", file, runs=2)
    assert done.returncode == 0, done.stderr
    return file, done


def test_tables_and_a_file(saved):
    file, done = saved
    assert re.match(r"\d+ cores \(.*\), Linux .*; median and range of 2 runs in turn\n", done.stdout)
    assert_is_table(done.stdout, "The launcher under load", [TRANSACTIONS, RATE, MEMORY, "load of the machine, before and after"])
    assert_is_table(done.stdout, "Records", ["Read/node", "Write/request"])
    content = json.loads(file.read_text())
    assert content["machine"]["cores"] >= 1
    assert list(content["results"]) == CHOSEN
    result = content["results"]["at-once"]
    assert len(result["figures"][TRANSACTIONS]["values"]) == 2
    assert len(result["loads"]) == 4, "before and after each run"
    # The second run of the first benchmark comes after the first run of the last one.
    assert re.findall(r"run (\d) of 2: ([\w-]+)", done.stderr) == [(str(run), name) for run in (1, 2) for name in CHOSEN]


def test_regressions_are_named(saved, tmp_path):
    content = json.loads(saved[0].read_text())
    figures = content["results"]["at-once"]["figures"]
    figures[TRANSACTIONS]["values"] = [1.0]
    figures[RATE]["values"] = [1e9]
    figures[MEMORY]["values"] = [1e6]
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(content))
    done = bench("at-once", "--compare", file)
    assert done.returncode == 1, done.stderr
    named = done.stdout.split("Regressions:", 1)[1]
    assert f"- at-once: {TRANSACTIONS}: 1 before, " in named
    assert f"- at-once: {RATE}: 1,000,000,000 before, " in named
    assert MEMORY not in named
    assert re.search(rf"\| {MEMORY} \| 1,000,000 MB \| [\d.]+ MB \| [\d.e-]+ \| better \|", done.stdout)


def test_against_another_build():
    done = bench("record-bench", "--against", BIN, runs=2)
    assert done.returncode in (0, 1), done.stderr  # it measures times
    assert "| | other build | this build | ratio | |" in done.stdout
    assert len(re.findall(r"run [12] of 2: record-bench", done.stderr)) == 4


def test_what_was_measured_otherwise_is_not_compared(saved, tmp_path):
    content = json.loads(saved[0].read_text())
    content["results"]["record-bench"]["words"].append("--another")
    file = tmp_path / "other.json"
    file.write_text(json.dumps(content))
    done = bench("record-bench", "--compare", file)
    assert done.returncode == 0, done.stderr
    assert "Measured with other sizes" in done.stdout and "No regressions." in done.stdout


def test_an_unknown_name_and_a_failure(tmp_path):
    done = bench("at-onc")
    assert done.returncode == 2 and "there is no benchmark at-onc" in done.stderr
    done = bench("record-bench", "--programs", tmp_path)
    assert done.returncode == 2 and "bench/run: " in done.stderr


@pytest.mark.parametrize("kind, before, after, is_worse, is_regression", [
    (Kind.LOW, [10, 10, 10], [10.9, 10.9, 10.9], False, False),
    (Kind.LOW, [10, 10, 10], [11.2, 11.1, 11.3], True, True),
    (Kind.LOW, [10, 10, 12], [11.2, 11.1, 11.3], True, False),  # the runs overlap
    (Kind.HIGH, [100, 101, 102], [80, 81, 82], True, True),
    (Kind.HIGH, [100, 101, 102], [120, 121, 122], False, False),
    (Kind.COUNT, [8], [8.04], False, False),
    (Kind.COUNT, [8], [9], True, True),
    (Kind.COUNT, [0], [1], True, True),
    (Kind.COUNT, [8], [7], False, False),
    (Kind.SHOWN, [1], [100], False, False),
])
def test_what_is_a_regression(kind, before, after, is_worse, is_regression):
    change = compare.compare_series("figure", Rule("*", "", kind, within=0.05), Series("", before), Series("", after))
    assert (change.is_worse, change.is_regression) == (is_worse, is_regression)


def test_figures_of_several_aspects():
    table = benchmarks.find(["lists"])[0][0]
    figures = {"nodepool list; median": Series("ms", [1.5]), "nodepool list; answer": Series("MB", [2]),
               "/node-list; median": Series("ms", [1, 2, 4])}
    text = report.show_table(table, list(table.benchmarks), {"lists-load": Result([], figures, [0.5, 1.0])})
    assert text.splitlines()[2:] == ["| | median | answer |", "| --- | --- | --- |", "| nodepool list | 1.5 ms | 2 MB |",
                                     "| /node-list | 2 (1 to 4) ms | |", "", "Load of the machine: 0.5 to 1.0."]


def test_names_are_unique():
    names = [name for table in benchmarks.TABLES for name in {table.name, *(benchmark.name for benchmark in table.benchmarks)}]
    assert len(names) == len(set(names))
