"""docs/one-computer.md, word for word."""
import re

from left_on_host import processes_of
from pages import Page
from real_run import SECONDS, kill, start
from services import wait_for


# LV-46
def test_the_page(shell):
    page = Page.read("docs/one-computer.md")
    demo, = page.section("Try it").commands()
    shown = shell.succeed(demo, SECONDS)
    for word in ("building the image", "machines run with", "ready:", "fulfilled:", "in use:", "host keys", "Linux np0000000000",
                 "released", "deleted:", "ready again:"):
        assert word in shown
    begin, *others, stop = page.section("Run jobs").commands()
    assert (begin, stop) == ("./run --real", "./run stop")
    run = start(shell)
    for command in others:
        shown = shell.succeed(command, SECONDS)
        if "compileall" in command:
            assert "every tool compiles" in shown
        if command.endswith("nodepool list"):
            assert re.search(r"this-computer-\w{6} +\| debian", shown)
    assert "Stopped." in shell.succeed(stop, 200)
    assert run.wait(30) == 0


def test_a_job_ends_with_its_commands_status_and_a_failed_one_gives_its_machine_back(shell):
    start(shell)
    assert shell.run("./run job 'exit 3'", SECONDS).returncode == 3
    wait_for(lambda: "in-use" not in shell.succeed("./run nodepool list"), "the machine is given back", 60)


def test_what_a_kill_has_left_is_removed(shell, checkout, host):
    kill(start(shell), checkout)
    assert any("qemu" in words for words in processes_of(checkout)), "machines outlive ./run"
    shown = shell.succeed("./run stop", 200)
    assert "Nothing is running." in shown and "Removed what a ./run that was killed has left" in shown
    host.assert_unchanged()


def test_a_start_after_a_kill_begins_anew(shell, checkout):
    kill(start(shell), checkout)
    start(shell)
    assert shell.succeed("./run nodepool list --json").count('"ready"') >= 1
