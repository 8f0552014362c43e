"""README.md on a fresh Debian, word for word (./test --first-contact); but for ./test itself, which takes an hour."""
import os

import pytest

from debian_tree import CHECKOUT, Machine
from pages import Page
from shell import Shell
from tour import play_tour

pytestmark = pytest.mark.skipif(not os.environ.get("NODEPOOL_TEST_FIRST_CONTACT"), reason="only with ./test --first-contact")


def test_the_readme(newcomer, tmp_path):
    demo, run, _ = Page.read("README.md").section("Two commands").commands()
    with Shell(newcomer.words("env", "-C", CHECKOUT), tmp_path) as shell:
        shown = shell.succeed(demo, seconds=1800)
        for word in ("ready:", "fulfilled:", "in use:", "released", "deleted:"):
            assert word in shown
    assert run.split("#")[0].strip() == "./run", "with which the tour begins"
    with Machine(newcomer, "readme") as machine, Shell(machine.words("env", "-C", CHECKOUT), tmp_path) as shell:
        play_tour(shell)
        assert "Nothing is running" in shell.succeed("./run stop")
