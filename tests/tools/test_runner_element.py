"""The hooks of examples/elements/nodepool-github-runner, as diskimage-builder runs them."""
import getpass
import hashlib
import io
import os
import pathlib
import subprocess
import tarfile

import pytest

from services import ROOT

ELEMENT = ROOT / "examples/elements/nodepool-github-runner"


@pytest.fixture
def archive(tmp_path):
    return pack(tmp_path / "actions-runner-linux-x64-2.340.0.tar.gz", "./run.sh")


def pack(path, name):
    text = b"#!/bin/sh\n"
    with tarfile.open(path, "w:gz") as packed:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(text), 0o755
        packed.addfile(entry, io.BytesIO(text))
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bring(tmp_path, archive, checksum=""):
    """Runs the hook outside the image, with the variables of the environment hook."""
    hooks = tmp_path / "hooks"
    hooks.mkdir(exist_ok=True)
    variables = {"DIB_GITHUB_RUNNER_ARCHIVE": str(archive), "DIB_GITHUB_RUNNER_SHA256": checksum, "TMP_HOOKS_PATH": str(hooks)}
    line = f". {ELEMENT}/environment.d/10-nodepool-github-runner.bash && {ELEMENT}/extra-data.d/50-nodepool-github-runner"
    return subprocess.run(["bash", "-c", line], env=os.environ | variables, capture_output=True, text=True, timeout=60)


def test_an_archive_with_the_right_digest_is_taken(tmp_path, archive):
    assert bring(tmp_path, archive, digest(archive)).returncode == 0
    assert (tmp_path / "hooks/nodepool-github-runner.tar.gz").read_bytes() == archive.read_bytes()
    assert bring(tmp_path, archive).returncode == 0


@pytest.mark.parametrize("place, checksum, said", [
    ("", "", "DIB_GITHUB_RUNNER_ARCHIVE names no archive"), ("relative.tar.gz", "", "neither an absolute path nor"),
    ("http://example.org/x.tar.gz", "", "neither an absolute path nor"), (None, "0" * 64, "DIB_GITHUB_RUNNER_SHA256")])
def test_what_is_refused(tmp_path, archive, place, checksum, said):
    done = bring(tmp_path, archive if place is None else place, checksum)
    assert done.returncode == 1 and said in done.stderr


def unpack(tmp_path, archive):
    """Runs the hook of the image, with a home of its own for the user."""
    home = tmp_path / "home"
    home.mkdir()
    hooks = tmp_path / "hooks"
    assert bring(tmp_path, archive).returncode == 0
    words = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/tmp", "--bind", hooks, "/tmp/in_target.d", "--bind", home, pathlib.Path.home(),
             "--ro-bind", ELEMENT, "/tmp/element", "/tmp/element/install.d/80-nodepool-github-runner"]
    done = subprocess.run(words, env=os.environ | {"DIB_GITHUB_RUNNER_USER": getpass.getuser()}, capture_output=True, text=True, timeout=60)
    return done, home


def test_the_runner_is_in_the_users_home(tmp_path, archive):
    done, home = unpack(tmp_path, archive)
    assert done.returncode == 0, done.stderr
    program = home / "actions-runner/run.sh"
    assert os.access(program, os.X_OK) and program.owner() == getpass.getuser()
    assert not (tmp_path / "hooks/nodepool-github-runner.tar.gz").exists(), "it does not stay in the image"


def test_an_archive_without_the_program_ends_the_build(tmp_path):
    done, _ = unpack(tmp_path, pack(tmp_path / "other.tar.gz", "readme"))
    assert done.returncode == 1 and "has no run.sh" in done.stderr
