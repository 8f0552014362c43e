"""Commands typed into a shell, on this machine or in a tree."""
import pathlib
import subprocess

from services import Process


class Shell:
    """Runs lines after `words`, which enter the place where they are to run. Used in a with statement, at whose end
    everything that was started is stopped."""

    def __init__(self, words, logs: pathlib.Path):
        self.words = [*map(str, words), "bash", "-c"]
        self.logs = logs
        self.started: list[Process] = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            process.stop(20)

    def run(self, line: str, seconds: float = 90) -> subprocess.CompletedProcess:
        return subprocess.run([*self.words, line], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)

    def succeed(self, line: str, seconds: float = 90) -> str:
        """The output of a line that succeeds."""
        done = self.run(line, seconds)
        assert done.returncode == 0, f"{line}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    def start(self, line: str) -> Process:
        """A command that goes on, as in a terminal of its own."""
        process = Process([*self.words, f"exec {line}"], self.logs / f"terminal-{len(self.started)}.log")
        self.started.append(process)
        return process
