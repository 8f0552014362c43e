"""The tour of README.md, played word for word: in a checkout where everything is built, and on a fresh Debian."""
import re

from pages import Page
from services import wait_for
from shell import Shell


def play_tour(shell: Shell):
    """In a shell whose directory is the checkout."""
    request, *others = Page.read("README.md").section("A tour of five minutes").commands()
    assert request == "./run nodepool request small large --wait" and "./run nodepool release" in others
    run = shell.start("./run")
    wait_for(lambda: "The launcher runs until Ctrl-C" in run.output() or not run.is_running(), "the pool is full", 300)
    assert run.is_running(), run.output()
    assert all(command in run.output() for command in (request, "./run nodepool list"))
    client = shell.start(request)
    wait_for(lambda: "fulfilled" in client.output(), "the request is fulfilled", 60)
    for command in others:
        shown = shell.succeed(command)
        if command == "./run nodepool release":
            assert len(re.findall(r"^Node \d+ released$", shown, re.MULTILINE)) == 2
            assert client.wait(20) == 0, "as the tour says, the second terminal's command ends"
    again = shell.run("./run")
    assert again.returncode == 1 and "going on already" in again.stderr
    assert "Stopped" in shell.succeed("./run stop")
    assert run.wait(10) == 0
