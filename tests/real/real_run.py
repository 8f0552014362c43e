"""A ./run with real machines, in a shell."""
import os
import pathlib
import signal

from services import Process, wait_for
from shell import Shell

SECONDS = 1800  # with a first build of the image, without KVM
IS_UP = "The launcher runs until Ctrl-C"


def start(shell: Shell, command: str = "./run --real") -> Process:
    run = shell.start(command)
    wait_for(lambda: IS_UP in run.output() or not run.is_running(), "real machines are ready", SECONDS)
    assert run.is_running(), run.output()
    return run


def kill(run: Process, checkout: pathlib.Path):
    """Without a chance to remove anything."""
    os.kill(int((checkout / ".state/run.pid").read_text()), signal.SIGKILL)
    run.wait(30)
