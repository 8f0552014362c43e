"""Daemons in the background, with real processes (operations.md 2.2)."""
import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time

import pytest

from nodepool_helpers import BIN
from services import wait_for


class Background:
    """A daemon that is started as from a shell, and ends with the test."""

    def __init__(self, folder: pathlib.Path, program: str, config: pathlib.Path):
        self.program = BIN / program
        self.config = config
        self.pid_file = folder / "np.pid"
        self.log = folder / "np.log"
        self.setup = folder / "logging.yaml"
        self.setup.write_text(json.dumps({
            "version": 1, "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
            "handlers": {"file": {"class": "logging.FileHandler", "filename": str(self.log), "formatter": "line"}},
            "root": {"level": "INFO", "handlers": ["file"]}}))
        self.seen = set()

    def words(self):
        return [str(word) for word in (self.program, "-c", self.config, "-p", self.pid_file, "-l", self.setup)]

    def start(self, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(self.words(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              start_new_session=True, **options)
        if done.returncode == 0:
            self.seen.add(self.pid())
        return done

    def pid(self) -> int:
        text = self.pid_file.read_text()
        assert text.endswith("\n") and text.count("\n") == 1
        return int(text)

    def logged(self, words: str):
        wait_for(lambda: self.log.exists() and words in self.log.read_text(), f"'{words}' is logged")

    def end(self, number: int):
        pid = self.pid()
        os.kill(pid, number)
        wait_for(lambda: not is_running(pid), "it ends", 60)


def is_running(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(params=["nodepool-launcher", "nodepool-builder", "nodepoold"])
def daemon(request, site):
    images = site.folder / "images"
    images.mkdir()
    config = site.config(**{"images-dir": str(images), "build-log-dir": str(site.folder / "logs")})
    site.observer()  # makes the chroot
    running = Background(site.folder, request.param, config)
    yield running
    for pid in running.seen:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


STARTED = {"nodepool-launcher": "Nodepool launcher", "nodepool-builder": "builder", "nodepoold": "Nodepool launcher"}


# operations.2.2
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_the_terminal_and_its_files(daemon, number):
    done = daemon.start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pid = daemon.pid()
    process = pathlib.Path(f"/proc/{pid}")
    assert stat.S_IMODE(daemon.pid_file.stat().st_mode) == 0o644
    assert os.readlink(process / "cwd") == "/"
    assert [os.readlink(process / "fd" / name) for name in "012"] == ["/dev/null"] * 3
    assert "\nUmask:\t0022\n" in (process / "status").read_text()
    assert resource.prlimit(pid, resource.RLIMIT_CORE)[0] == 0
    assert os.getsid(pid) not in (os.getsid(0), pid), "its session is its own, and it does not lead it"
    daemon.logged(STARTED[daemon.program.name])
    daemon.end(number)
    assert not daemon.pid_file.exists()


# operations.2.2, operations.16.19
def test_it_does_not_run_twice(daemon):
    assert daemon.start().returncode == 0
    begin = time.monotonic()
    second = daemon.start()
    assert second.returncode == 1
    assert f"process {daemon.pid()} is running" in second.stderr
    assert 9 < time.monotonic() - begin < 25
    os.kill(daemon.pid(), signal.SIGKILL)
    wait_for(lambda: not is_running(daemon.pid()), "it is killed")
    assert daemon.start().returncode == 0, "what a killed one leaves behind is in nobody's way"
    daemon.end(signal.SIGINT)


# operations.2.2
def test_a_pid_file_without_a_number_is_taken_over(daemon):
    daemon.pid_file.write_text("")
    assert daemon.start().returncode == 0
    daemon.end(signal.SIGINT)


# operations.2.2
def test_a_lock_on_its_pid_file_is_not_waited_for_for_ever(daemon):
    daemon.pid_file.write_text("99999999999\n")
    with open(daemon.pid_file) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        done = daemon.start()
    assert done.returncode == 1
    assert f"the pid file {daemon.pid_file} is locked by process {os.getpid()}; end it or use -p FILE" in done.stderr


# operations.2.2
def test_what_speaks_against_a_start_is_told_where_it_was_started(daemon):
    daemon.config.write_text("labels: nonsense\n")
    done = daemon.start()
    assert done.returncode == 1
    assert str(daemon.config) in done.stderr
    daemon.logged(f"{daemon.program.name} ends: ")
    assert not daemon.pid_file.exists()
    daemon.pid_file = daemon.pid_file.parent / "none/np.pid"
    done = daemon.start()
    assert done.returncode == 1 and f"cannot create the pid file {daemon.pid_file}" in done.stderr
    assert done.stderr.endswith("; use -p FILE, or -f to stay in the foreground\n")


# operations.2.2
def test_it_is_not_forked_when_standard_input_is_a_socket(daemon):
    ours, theirs = socket.socketpair()
    with ours, theirs, open(daemon.pid_file.parent / "output", "wb") as output:
        child = subprocess.Popen(daemon.words(), stdin=theirs, stdout=output, stderr=output)
        try:
            daemon.logged(STARTED[daemon.program.name])
            assert child.poll() is None and daemon.pid() == child.pid
            assert os.readlink(f"/proc/{child.pid}/fd/0") == "/dev/null"
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 0
        finally:
            child.kill()
            child.wait()
    assert not daemon.pid_file.exists()


def may_mount() -> bool:
    words = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/var/log", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(words, capture_output=True).returncode == 0


# operations.8.1
@pytest.mark.skipif(not may_mount(), reason="bubblewrap cannot mount here")
def test_its_log_is_where_it_always_was(daemon):
    """With directories of its own at the usual places of log and pid file."""
    run, log = daemon.pid_file.parent / "run", daemon.pid_file.parent / "log"
    for folder in (run, log):
        (folder / "nodepool").mkdir(parents=True)
    done = subprocess.run(["bwrap", "--dev-bind", "/", "/", "--bind", run, os.path.realpath("/var/run"), "--bind", log,
                           "/var/log", daemon.program, "-c", daemon.config], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    name = "nodepool-builder" if "builder" in daemon.program.name else "nodepool"
    assert done.returncode == 0, done.stderr
    pid_file, log_file = run / f"nodepool/{name}.pid", log / f"nodepool/{name}.log"
    pid = int(pid_file.read_text())
    daemon.seen.add(pid)
    wait_for(lambda: STARTED[daemon.program.name] in log_file.read_text(), "it logs")
    assert stat.S_IMODE(log_file.stat().st_mode) == 0o644
    log_file.rename(log / "old")
    os.kill(pid, signal.SIGHUP)
    wait_for(log_file.exists, "the log is opened anew")
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not is_running(pid), "it ends")
    assert not pid_file.exists()
