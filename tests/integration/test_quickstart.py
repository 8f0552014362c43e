"""The commands of README.md."""
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from nodepool_helpers import BIN, ROOT
from services import Process, wait_for
from shell import Shell
from tour import play_tour

RUN = ROOT / "tools/run-nodepool"  # ./run without installing and building
ENV = {"NODEPOOL_BIN": str(BIN)}


def test_run_demo(tmp_path):
    done = subprocess.run([RUN, "demo", "--simulated", "--state-dir", tmp_path], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **ENV})
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("ready:", "fulfilled:", "in use:", "released", "deleted:"):
        assert word in done.stdout


def run_in_a_copy(tmp_path, *words):
    """What ./run does with `words`, in a tree that holds no more than it needs for that."""
    for folder in ("tools", "build/release/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "run", tmp_path)
    for name in ("tools/run-nodepool", "tools/install-packages", "build/release/bin/nodepool"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} \"$@\"\n")
        (tmp_path / name).chmod(0o755)
    return subprocess.run([tmp_path / "run", *words], capture_output=True, text=True, timeout=60).stdout.splitlines()


def test_run_nodepool_is_the_command_line_of_what_runs(tmp_path):
    assert run_in_a_copy(tmp_path, "nodepool", "list", "--json") == [
        "build/release/bin/nodepool -c .state/nodepool.yaml list --json"]


def test_what_run_does_not_know_is_refused_before_anything_is_built(tmp_path):
    assert run_in_a_copy(tmp_path, "foo") == ["tools/run-nodepool foo"]
    refused = subprocess.run([RUN, "foo"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "invalid choice: 'foo'" in refused.stderr


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run([RUN, "--state-dir", tmp_path / "file/below"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **ENV})
    assert done.returncode == 1
    assert done.stderr.startswith("The state folder cannot be used: ") and "--state-dir" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_launcher_that_is_killed_is_said_to_be_killed(tmp_path):
    run = Process([RUN, "--simulated", "--state-dir", tmp_path], tmp_path / "run.log", env=ENV)
    try:
        wait_for(lambda: "The launcher runs until Ctrl-C" in run.output(), "the pool is full", 60)
        mine = str(tmp_path / "nodepool.yaml").encode()
        launchers = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                     if mine in _read(path) and b"standalone" in _read(path)]
        for path in launchers:
            os.kill(int(path.parent.name), signal.SIGKILL)
        assert run.wait(30) == 1
        assert "The launcher was killed by signal 9" in run.output()
    finally:
        run.stop(20)


@pytest.fixture
def checkout(tmp_path):
    """A tree in which ./run finds everything built, as the tour's reader has it after the first start."""
    copy = tmp_path / "checkout"
    (copy / "tools").mkdir(parents=True)
    (copy / "build/release").mkdir(parents=True)
    shutil.copy(ROOT / "run", copy)
    for name in ("run-nodepool", "services.py"):
        shutil.copy(ROOT / "tools" / name, copy / "tools")
    shutil.copytree(ROOT / "tools/quickstart", copy / "tools/quickstart")
    (copy / "examples").symlink_to(ROOT / "examples")
    (copy / "build/release/bin").symlink_to(BIN.resolve())
    for name in ("tools/install-packages", "path/cmake"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("#!/bin/sh\n")
        (copy / name).chmod(0o755)
    return copy


def test_the_tour(checkout):
    """Word for word as README.md has it."""
    environment = ["env", "-C", checkout, f"PATH={checkout}/path:{os.environ['PATH']}", f"NODEPOOL_BIN={checkout}/build/release/bin"]
    with Shell(environment, checkout) as shell:
        play_tour(shell)
        children = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(checkout).encode() in _read(path)]
        assert children == [], "no process is left"
        assert "Nothing is running" in shell.succeed("./run stop")


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
