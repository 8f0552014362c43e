"""README.md on a fresh Debian, word for word (./test --first-contact); but for ./test itself."""
import os

import pytest

from debian_tree import CHECKOUT, Machine
from pages import Page
from reader import Reader

pytestmark = pytest.mark.skipif(not os.environ.get("NODEPOOL_TEST_FIRST_CONTACT"), reason="only with ./test --first-contact")


def test_the_readme(newcomer):
    page = Page.read("README.md")
    demo, *others = page.section("Three commands").steps() + page.section("A tour of five minutes").steps()
    with Reader(newcomer.words("env", "-C", CHECKOUT)) as reader:
        reader.follow([demo])  # installs and builds, which needs the network
        reader.expect_the_end()
    with Machine(newcomer, "readme") as machine, Reader(machine.words("env", "-C", CHECKOUT)) as reader:
        reader.follow(others)
        reader.expect_the_end()
