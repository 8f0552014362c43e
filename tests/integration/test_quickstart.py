"""What ./run does and refuses. test_first_hour.py does what README.md says of it."""
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from nodepool_helpers import BIN, ROOT
from services import Process, files_of_processes, wait_for

RUN = ROOT / "tools/run-nodepool"  # ./run without installing and building
ENV = {"NODEPOOL_BIN": str(BIN)}


@pytest.fixture
def without_virsh(tmp_path):
    """An environment of a computer without libvirt's command line."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in pathlib.Path(folder).iterdir():
            if program.name != "virsh" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    return {**os.environ, **ENV, "PATH": str(programs)}


def test_without_libvirt_real_machines_are_simulated_and_the_reason_is_said(tmp_path, without_virsh):
    done = subprocess.run([RUN, "demo", "--real", "--state-dir", tmp_path / "state"], capture_output=True, text=True, timeout=120,
                          env=without_virsh)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_ = done.stdout.splitlines()
    assert first.startswith("No real machines, but a simulated cloud: these programs are missing: virsh")
    assert "packages-real.txt" in first and "deleted:" in done.stdout


def test_a_job_without_real_machines_is_refused(tmp_path):
    for words, status, reason in [(["job", "true"], 1, "start them with ./run --real"), (["job"], 2, "job needs a command"),
                                  (["demo", "true"], 2, "unknown word true")]:
        done = subprocess.run([RUN, *words, "--state-dir", tmp_path], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **ENV})
        assert done.returncode == status and reason in done.stderr


def test_packages_of_real_machines_are_installed_only_for_them(tmp_path):
    (tmp_path / "path").mkdir()
    (tmp_path / "path/cmake").write_text("#!/bin/sh\n")
    (tmp_path / "path/cmake").chmod(0o755)
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    real, plain = (run_in_a_copy(tmp_path / words[-1], *words, path=path) for words in (["demo", "--real"], ["demo"]))
    assert "tools/install-packages packages-real.txt" in real and real[-1] == "tools/run-nodepool demo --real"
    assert not any("packages-real" in line for line in plain)


def run_in_a_copy(tmp_path, *words, path=os.environ["PATH"]):
    """What ./run does with `words`, in a tree that holds no more than it needs for that."""
    for folder in ("tools", "build/release/bin"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "run", tmp_path)
    for name in ("tools/run-nodepool", "tools/install-packages", "build/release/bin/nodepool"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} \"$@\"\n")
        (tmp_path / name).chmod(0o755)
    return subprocess.run([tmp_path / "run", *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": path}).stdout.splitlines()


def test_a_copy_of_a_built_checkout_says_that_it_is_built_anew_and_removes_what_is_of_no_use(tmp_path):
    (tmp_path / "path").mkdir()
    (tmp_path / "path/cmake").write_text("#!/bin/sh\n")
    (tmp_path / "path/cmake").chmod(0o755)
    path = f"{tmp_path}/path:{os.environ['PATH']}"
    built = tmp_path / "copy/build/release"
    for home, said in [(tmp_path / "copy", []), ("/elsewhere", ["build/release was made in /elsewhere", "Building "])]:
        built.mkdir(parents=True, exist_ok=True)
        (built / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
        _, *lines, _ = run_in_a_copy(tmp_path / "copy", path=path)
        assert len(lines) == len(said) and all(map(str.startswith, lines, said)), lines
        assert built.exists() == (not said)


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
        launchers = [path for path in files_of_processes("cmdline")
                     if mine in _read(path) and b"standalone" in _read(path)]
        for path in launchers:
            os.kill(int(path.parent.name), signal.SIGKILL)
        assert run.wait(30) == 1
        assert "The launcher was killed by signal 9" in run.output()
    finally:
        run.stop(20)


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
