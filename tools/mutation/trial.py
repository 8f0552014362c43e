"""Runs test programs with a mutant switched on, or to find which mutants each test reaches."""
import collections
import ctypes
import dataclasses
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

SEEDS = "8"  # of the simulation
MEMORY = 4 << 30
OUTPUT = 64 << 20
SLOW = 0.5  # CPU seconds of a test that runs only if the others have not found the mutant
CLOSEST = 10  # tests that run first
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
FAILED = re.compile(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", re.MULTILINE)


def limit(cpu_seconds):
    def apply():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with this process
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    return apply


@dataclasses.dataclass
class Cost:
    """CPU time and elapsed time, in seconds."""
    cpu: float = 0
    wall: float = 0

    def __add__(self, other):
        return Cost(self.cpu + other.cpu, self.wall + other.wall)

    def limit(self):
        """The limit for a run that took this without a mutant, on a machine with other load."""
        return Cost(5 + 4 * self.cpu, 60 + 4 * self.wall)


def wait(child, seconds):
    """Whether it ended by itself with status 0, and how much processor time it took."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode == 0, usage.ru_utime + usage.ru_stime
        time.sleep(0.01)
    return False, 0


def run(program, tests, most, **environment):
    """(whether all passed, the output, the cost). Leaves no process or file behind."""
    folder = tempfile.mkdtemp(prefix="mutants-")
    words = [str(program), "--gtest_fail_fast", "--gtest_brief=1", "--gtest_filter=" + ":".join(tests)]
    start = time.monotonic()
    with open(os.path.join(folder, "output"), "w+b") as output:
        child = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 start_new_session=True, cwd=folder, preexec_fn=limit(int(most.cpu) + 1),
                                 env={**os.environ, "TMPDIR": folder, "NODEPOOL_SIMULATION_SEEDS": SEEDS, **environment})
        is_good, cpu = wait(child, most.wall)
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return is_good, text, Cost(cpu, time.monotonic() - start)


def tests_of(program):
    listed = subprocess.run([str(program), "--gtest_list_tests"], capture_output=True, check=True, text=True)
    suite, names = "", []
    for line in listed.stdout.splitlines():
        word = line.split("#")[0].rstrip()
        if line.startswith(" "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return [name for name in names if "DISABLED_" not in name]


def measure(program, test):
    """The cost of the test and the numbers of the mutants that it reaches; None if it fails without a mutant."""
    with tempfile.NamedTemporaryFile(prefix="reached-") as reached:
        is_good, text, cost = run(program, [test], Cost(300, 600), NODEPOOL_MUTANTS_REACHED=reached.name)
        if not is_good:
            print(f"{program.name}: {test} fails without a mutant and is left out\n{text[-600:]}", flush=True)
            return None
        return cost.cpu, cost.wall, sorted({int(line) for line in open(reached.name, encoding="utf-8")})


def cover(programs, jobs):
    """Every test that reaches a mutant: [program's name, test, seconds of processor and clock, mutants]."""
    tests = [(program, test) for program in programs for test in tests_of(program)]
    with ThreadPoolExecutor(jobs) as pool:
        measured = pool.map(lambda pair: measure(*pair), tests)
        return [[program.name, test, *found] for (program, test), found in zip(tests, measured) if found and found[2]]


def rounds(number, coverage):
    """The runs that may find a mutant: (program's name, tests, cost). Tests that reach the fewest mutants
    are first, since they are the most specific; the slow ones are last."""
    reaching = sorted((row for row in coverage if number in row[4]), key=lambda row: len(row[4]))
    groups = collections.defaultdict(list)
    for rank, (program, test, cpu, wall, _) in enumerate(reaching):
        groups[cpu > SLOW, rank >= CLOSEST, program].append((test, Cost(cpu, wall)))
    runs = [(order, [test for test, _ in group], sum((cost for _, cost in group), Cost()))
            for order, group in groups.items()]
    runs.sort(key=lambda run_: (run_[0][:2], run_[2].cpu))
    return [(order[2], tests, cost) for order, tests, cost in runs]


def try_mutant(number, coverage, folder):
    """The result: {"outcome": "killed", "survived" or "unreached", "by": the test that found it}."""
    runs = rounds(number, coverage)
    for program, tests, cost in runs:
        is_good, text, _ = run(folder / program, tests, cost.limit(), NODEPOOL_MUTANT=str(number))
        if not is_good:
            found = FAILED.search(text)
            return {"outcome": "killed", "by": f"{program}: {found.group(1) if found else 'it did not end in order'}"}
    return {"outcome": "survived" if runs else "unreached", "by": ""}
