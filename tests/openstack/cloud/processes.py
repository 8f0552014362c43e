"""Daemons that outlive the program that starts them, known by their pid files."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import time


class Daemons:
    """Those of one folder. `environment` is all they see of ours."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str]):
        self.folder = folder
        self.environment = environment

    def pid(self, name: str) -> int | None:
        """Of the running daemon; a number that another process has got since does not count."""
        try:
            pid = int((self.folder / f"run/{name}.pid").read_text())
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self.folder).encode() in words else None

    def start(self, name: str, *words):
        if self.pid(name):
            return
        with open(self.folder / f"log/{name}.out", "ab") as output:
            process = subprocess.Popen([str(word) for word in words], env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True, cwd="/")
        (self.folder / f"run/{name}.pid").write_text(str(process.pid))
        # Its words can be read only some moments after it has been started.
        while process.poll() is None and not self.pid(name):
            time.sleep(0.01)

    def run(self, name: str, *words):
        """A program that ends; its output is shown when it fails."""
        path = self.folder / f"log/{name}.out"
        with open(path, "wb") as output:
            done = subprocess.run([str(word) for word in words], env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=output, cwd="/")
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}:\n{path.read_text(errors='replace')[-3000:]}")

    def wait(self, name: str, condition, seconds: float = 180):
        deadline = time.monotonic() + seconds
        while not condition():
            if not self.pid(name):
                raise RuntimeError(f"{name} ended:\n{self.tail(name)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not answer after {seconds} s:\n{self.tail(name)}")
            time.sleep(0.1)

    def tail(self, name: str) -> str:
        texts = [path.read_text(errors="replace")[-3000:]
                 for path in (self.folder / f"log/{name}.log", self.folder / f"log/{name}.out") if path.exists()]
        return "\n".join(texts)

    def stop(self, name: str, number: int, seconds: float):
        pid = self.pid(name)
        if pid is None:
            return
        os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while self.pid(name) and time.monotonic() < deadline:
            time.sleep(0.05)
        if self.pid(name):
            os.killpg(pid, signal.SIGKILL)
        (self.folder / f"run/{name}.pid").unlink()


def answers_http(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Below those that the system gives to clients: a cloud that is started again needs the same ones."""
    found = []
    while len(found) < count:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found
