"""docs/one-computer.md on a fresh Debian, from a clone to "machine deleted" (./test --first-contact --real)."""
import os

import pytest

from debian_tree import CHECKOUT
from left_on_host import LeftOnHost
from pages import Page
from shell import Shell

pytestmark = pytest.mark.skipif(not {"NODEPOOL_TEST_FIRST_CONTACT", "NODEPOOL_TEST_REAL"} <= os.environ.keys(),
                                reason="only with ./test --first-contact --real")

# What a computer has and a tree has not: devices, its kernel's settings, and a name that it can resolve.
AS_A_COMPUTER = ["--dev-bind", "/dev", "/dev", "--bind", "/sys", "/sys", "--bind", "/proc/sys", "/proc/sys",
                 "--unshare-uts", "--hostname", "localhost"]
SECONDS = 5400  # packages, a first build of Nodepool and of the image, and two machines without KVM
STEPS = ("Installing:", "building the image", "machines run with", "ready:", "fulfilled:", "in use:", "host keys",
         "Linux np0000000000", "released", "deleted:", "ready again:")


# LV-46
def test_the_demo_with_real_machines(newcomer, tmp_path):
    host = LeftOnHost(newcomer.path(CHECKOUT))
    demo, = Page.read("docs/one-computer.md").section("Try it").commands()
    with Shell([*newcomer.enter(*AS_A_COMPUTER, "--chdir", CHECKOUT)], tmp_path) as shell:
        shown = shell.succeed(demo, SECONDS)
    print(shown[-4000:])  # with the time of each step
    found = [shown.find(step) for step in STEPS]
    assert -1 not in found, f"{STEPS[found.index(-1)]} is missing"
    assert found == sorted(found)
    host.assert_unchanged()
