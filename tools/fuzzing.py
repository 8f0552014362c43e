"""Runs the fuzzers that the preset asan builds, for `./test` and tools/fuzz-for."""
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "tests/fuzz/corpus"
LIMITS = ["-timeout=60", "-rss_limit_mb=2048"]  # a hang is one on a busy machine, too
# The entropic schedule takes most of the time where an input reaches thousands of templates.
OPTIONS = ["-entropic=0", "-print_final_stats=1", *LIMITS]
INTERRUPTED = [72, -signal.SIGINT]  # libFuzzer's status after SIGINT, and that of a process that has just begun


@dataclasses.dataclass
class Result:
    fuzzer: pathlib.Path
    is_good: bool
    runs: int
    coverage: int            # edges of the program's control flow
    new_inputs: int          # added to the corpus
    processor_seconds: float # less than the time at the clock where others use the processors, too
    crashes: list[pathlib.Path]
    output: str

    @property
    def name(self) -> str:
        return self.fuzzer.name


class Processes:
    """The fuzzers that run, and whether they may."""

    def __init__(self):
        self.is_stopped = False
        self._running: set[int] = set()

    def begin(self, process: subprocess.Popen) -> None:
        self._running.add(process.pid)
        if self.is_stopped:  # a signal that came before the process was known
            os.kill(process.pid, signal.SIGINT)

    def end(self, process: subprocess.Popen) -> None:
        self._running.discard(process.pid)

    def stop(self) -> None:
        """Ends those that run, also those that begin afterwards; what they found is kept."""
        self.is_stopped = True
        for process in list(self._running):
            os.kill(process, signal.SIGINT)


def find(build: pathlib.Path) -> list[pathlib.Path]:
    return sorted((build / "bin").glob("*_fuzz"))


def run(fuzzer: pathlib.Path, seconds: int, corpus: pathlib.Path, crashes: pathlib.Path,
        processes: Processes) -> Result:
    """Runs one fuzzer until the time is over, `processes` are stopped or an input crashes it. `corpus` keeps what it finds
    in a folder of its name, `crashes` the inputs that crash it."""
    inputs = corpus / fuzzer.name
    for folder in (inputs, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    known = len(list(inputs.iterdir()))
    crashed = set(crashes.glob(f"{fuzzer.name}-*"))
    seeds = [SEEDS / fuzzer.name] if (SEEDS / fuzzer.name).is_dir() else []
    words = [fuzzer, f"-max_total_time={seconds}", *OPTIONS, f"-artifact_prefix={crashes}/{fuzzer.name}-", inputs, *seeds]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        processes.begin(process)
        output = process.stdout.read().decode(errors="replace")
        processes.end(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    coverage = re.findall(r" cov: (\d+)", output)
    runs = re.findall(r"stat::number_of_executed_units: +(\d+)", output)
    return Result(fuzzer, process.returncode in (0, *INTERRUPTED), int(runs[-1]) if runs else 0,
                  int(coverage[-1]) if coverage else 0, len(list(inputs.iterdir())) - known, usage.ru_utime + usage.ru_stime,
                  sorted(set(crashes.glob(f"{fuzzer.name}-*")) - crashed), output)


def run_all(fuzzers: list[pathlib.Path], seconds: int, jobs: int, corpus: pathlib.Path,
            crashes: pathlib.Path) -> Iterator[Result]:
    """Runs each once for so many seconds, `jobs` at a time; yields results as they come."""
    processes = Processes()
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run, fuzzer, seconds, corpus, crashes, processes) for fuzzer in fuzzers]
        for done in as_completed(waiting):
            yield done.result()
