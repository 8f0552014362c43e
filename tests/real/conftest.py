"""A checkout in which everything is installed and built, for ./run --real. Only with ./test --real."""
import os
import shutil

import pytest

from left_on_host import LeftOnHost
from nodepool_helpers import BIN, ROOT
from shell import Shell


@pytest.fixture
def checkout(tmp_path_factory):
    # A short path: libvirt's socket is in it.
    copy = tmp_path_factory.mktemp("real")
    shutil.copy(ROOT / "run", copy)
    shutil.copytree(ROOT / "tools", copy / "tools")
    (copy / "examples").symlink_to(ROOT / "examples")
    (copy / "build").mkdir()
    (copy / "build/release").symlink_to(BIN.resolve().parent)
    for name in ("tools/install-packages", "path/cmake"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("#!/bin/sh\n")
        (copy / name).chmod(0o755)
    return copy


@pytest.fixture
def host(checkout):
    """What the host has before; nothing more may be there at the end."""
    before = LeftOnHost(checkout)
    yield before
    before.assert_unchanged()


@pytest.fixture
def shell(checkout, host):
    words = ["env", "-C", checkout, f"PATH={checkout}/path:{os.environ['PATH']}", f"NODEPOOL_BIN={checkout}/build/release/bin"]
    with Shell(words, checkout) as typed:
        yield typed
        typed.run("./run stop", 200)
