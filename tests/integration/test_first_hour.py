"""The first hour of a newcomer: README.md, word for word, where everything is installed and built.

./test --first-contact does the same on a fresh Debian, from the first package on (tests/first_contact).
"""
import os
import re

import pytest
import yaml

from built_checkout import make_checkout, words_to_enter
from nodepool_helpers import BIN, ROOT
from pages import Page
from reader import Reader
from services import files_of_processes, free_port
from shell import Shell

README = Page.read("README.md")
START, TOUR = README.section("Three commands"), README.section("A tour of five minutes")
# The pages that these sections link to, and the test that does or compares what they say.
DONE_BY = {
    "docs/one-computer.md": "tests/real/test_one_computer.py",
    "docs/operator/page.md": "tests/page/test_buttons.py",
    "docs/operator/screens.md": "tests/integration/test_screens.py",
    "docs/standalone.md": "tests/integration/test_first_hour.py",
}


@pytest.fixture
def enter(tmp_path):
    """The words that enter a checkout."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    make_checkout(checkout, with_drivers=False)
    return words_to_enter(checkout)


def test_the_readme(enter, tmp_path):
    with Reader(enter) as reader:
        reader.follow(START.steps() + TOUR.steps())
        reader.expect_the_end()
        page = re.search(r"http://127.0.0.1:\d+/", reader.windows["./run"].shown())[0]
        assert page in reader.windows["./run nodepool status"].shown()
    with Shell(enter, tmp_path) as shell:
        assert "Nothing is running" in shell.succeed("./run stop")
    children = [path for path in files_of_processes("cmdline") if str(tmp_path).encode() in _read(path)]
    assert children == [], "no process is left"


def test_the_page_of_standalone(tmp_path):
    """With the example that it names, but for ports and folder, which others may use here."""
    content = yaml.safe_load((ROOT / "examples/config/one-machine.yaml").read_text())
    content["embedded-zookeeper"] = {"state-dir": str(tmp_path / "state"), "port": free_port()}
    content["webapp"]["port"] = free_port()
    (tmp_path / "nodepool.yaml").write_text(yaml.safe_dump(content))
    with Reader(["env", "-C", tmp_path, f"PATH={BIN.resolve()}:{os.environ['PATH']}"]) as reader:
        reader.follow(Page.read("docs/standalone.md").introduction().steps())
        reader.press_ctrl_c()
        reader.expect_the_end()


def test_each_page_of_the_first_hour_is_done_by_a_test():
    assert {page for page in START.links() | TOUR.links() if page.endswith(".md")} == DONE_BY.keys()
    for page, test in DONE_BY.items():
        assert page.rpartition("/")[2] in (ROOT / test).read_text(), f"{test} does nothing of {page}"


def test_a_second_run_is_refused_and_a_simulated_machine_says_what_it_is(enter, tmp_path):
    with Reader(enter) as reader, Shell(enter, tmp_path) as shell:
        reader.type("./run")
        again = shell.run("./run")
        assert again.returncode == 1 and "going on already" in again.stderr
        login = shell.run("./run nodepool exec small -- true")
        assert login.returncode == 125 and "its machine is simulated" in login.stderr
        shell.succeed("./run stop")


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
