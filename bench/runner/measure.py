"""Runs benchmarks, in turn, and keeps what they say."""
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

from runner.benchmarks import Benchmark
from runner.figure import Series


@dataclasses.dataclass
class Result:
    """Of one benchmark with one build: what was run, and its figures."""
    words: list[str]  # without folders, so that runs of two checkouts can be compared
    figures: dict[str, Series] = dataclasses.field(default_factory=dict)
    loads: list[float] = dataclasses.field(default_factory=list)  # the machine's load average before and after each run

    def add(self, figures: dict[str, tuple[float, str]]):
        for name, (value, unit) in figures.items():
            self.figures.setdefault(name, Series(unit, [])).values.append(value)


Results = dict[str, Result]  # by the benchmark's name


def machine() -> dict:
    model = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cores": os.cpu_count(), "processor": model[0] if model else platform.machine(), "kernel": platform.release()}


def words_of(benchmark: Benchmark, is_small: bool) -> list[str]:
    return [*benchmark.words, *(benchmark.small if is_small else ())]


def run_once(benchmark: Benchmark, own: pathlib.Path, measured: pathlib.Path, is_small: bool, result: Result):
    with tempfile.TemporaryDirectory(prefix="nodepool-bench-") as folder:
        file = pathlib.Path(folder) / "figures"
        places = {"own": own, "measured": measured, "file": file}
        words = [word.format(**places) for word in words_of(benchmark, is_small)]
        result.loads.append(os.getloadavg()[0])
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "NODEPOOL_BIN": str(measured)})
        result.loads.append(os.getloadavg()[0])
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        result.add(benchmark.read(file))


def run_all(benchmarks: list[Benchmark], builds: list[pathlib.Path], runs: int, is_small: bool) -> list[Results]:
    """The results of each build. All benchmarks are run before the second run of the first; builds take turns."""
    results: list[Results] = [{benchmark.name: Result(name_words(benchmark, is_small)) for benchmark in benchmarks} for _ in builds]
    for number in range(runs):
        for benchmark in benchmarks:
            for build, found in zip(builds, results):
                print(f"run {number + 1} of {runs}: {benchmark.name}, {build}", file=sys.stderr, flush=True)
                run_once(benchmark, builds[0], build, is_small, found[benchmark.name])
    return results


def name_words(benchmark: Benchmark, is_small: bool) -> list[str]:
    return [pathlib.PurePath(word).name for word in words_of(benchmark, is_small)]


def save(file: pathlib.Path, results: Results):
    text = json.dumps({"machine": machine(), "results": {name: dataclasses.asdict(result) for name, result in results.items()}},
                      indent=1)
    file.write_text(text + "\n")


def restore(file: pathlib.Path) -> Results:
    saved = json.loads(file.read_text())["results"]
    return {name: Result(entry["words"], {figure: Series(**series) for figure, series in entry["figures"].items()}, entry["loads"])
            for name, entry in saved.items()}
