"""Measures a daemon while it is attacked."""
import contextlib
import math
import pathlib
import signal
import subprocess
import sys
import threading
import time

from bounds import Bounds, memory_factor, slowness
from figures import Figures

# A daemon that takes more is killed, since others need the machine.
MOST_MEMORY = 4096  # MiB
# And one that has not ended so long after SIGINT.
LONGEST_STOP = 25  # s


def memory(pid: int, field: str) -> float:
    """MiB of a field of /proc/PID/status; 0 when the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), 0)


class Gauge(threading.Thread):
    """The peak of a process's memory from now on, in MiB beside what it has now."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process = process
        self.is_to_end = threading.Event()
        with contextlib.suppress(PermissionError):
            pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")
        self.before = memory(process.pid, "VmRSS")
        self.peak = self.before
        self.start()

    def run(self):
        while not self.is_to_end.wait(0.02):
            self.peak = max(self.peak, memory(self.process.pid, "VmHWM"))
            if self.peak > MOST_MEMORY:
                self.process.send(signal.SIGKILL)

    def stop(self) -> float:
        self.is_to_end.set()
        self.join()
        return self.peak - self.before


class Probe:
    """A process of its own that asks the daemon again and again."""

    def __init__(self, target):
        script = pathlib.Path(__file__).with_name("probe.py")
        words = [sys.executable, script, target.zookeeper_port or 0, target.web_port or 0]
        words += [target.authority] if target.authority else []
        self.child = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.child.stdout.readline()

    def stop(self) -> float:
        """The longest delay in ms."""
        return float(self.child.communicate()[0])


def seconds_to_stop(process) -> float:
    """How long SIGINT takes; infinite unless the process ends with status 0."""
    begin = time.monotonic()
    process.send(signal.SIGINT)
    try:
        status = process.wait(LONGEST_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        status = None
    return time.monotonic() - begin if status == 0 else math.inf


def check(figures: Figures, bounds: Bounds, target):
    factor = slowness(target.program)
    assert figures.memory <= bounds.memory * memory_factor(target.program), figures
    assert figures.probe <= bounds.probe * factor, figures
    assert figures.stop <= bounds.stop * factor, f"{figures}: {target.process.how_it_ended()}"
    assert "session is lost" not in target.process.output()


@contextlib.contextmanager
def measured(attack: str, target, bounds: Bounds, record):
    """Measures what the body does to the target, which is stopped at its end with the attackers still connected.
    `record` gets the figures, also when the body fails."""
    probe = Probe(target)
    gauge = Gauge(target.process)
    try:
        yield
    finally:
        longest = probe.stop()
        seconds = seconds_to_stop(target.process)
        figures = Figures(attack, gauge.stop(), longest, seconds)
        record(figures)
    check(figures, bounds, target)
