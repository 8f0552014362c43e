"""Output that cannot be written is an error of whatever prints it (operations.md 5.1)."""
import os
import pathlib
import stat
import subprocess

import pytest

from nodepool_helpers import BIN

PRINTING = [("nodepool", "list"), ("nodepool", "list", "--json"), ("nodepool", "dib-image-list", "--json"), ("nodepool", "--help"),
            ("nodepool", "list", "--help"), ("nodepool-launcher", "--help"), ("nodepool-launcher", "--version"),
            ("nodepool-builder", "--help"), ("nodepool", "standalone", "--help")]


def run(site, words, stdout) -> subprocess.CompletedProcess:
    program, *rest = words
    config = ["-c", site.config("tool")] if program == "nodepool" and rest[0] not in ("--help", "standalone") else []
    return subprocess.run([BIN / program, *config, *rest], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


@pytest.fixture
def some_site(site):
    site.observer()  # makes the chroot
    return site


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_full_disk_is_an_error(some_site, words):
    with open("/dev/full", "wb") as full:
        done = run(some_site, words, full)
    assert done.returncode == 1
    assert done.stderr.endswith(": the output is incomplete: No space left on device\n")


def test_a_reader_that_has_gone_is_none(some_site):
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as pipe:
        done = run(some_site, ("nodepool", "list", "--json"), pipe)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_export_that_cannot_be_written_leaves_nothing(some_site, tmp_path):
    done = some_site.tool("export-image-data", "/dev/full")
    assert done.returncode == 1 and "/dev/full: No space left on device" in done.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode) and not os.path.exists("/dev/full.part")
    assert some_site.tool("export-image-data", "/dev/stdout").stdout == "{}"
    taken = tmp_path / "taken"
    taken.mkdir()
    done = some_site.tool("export-image-data", taken)
    assert done.returncode == 1 and "Is a directory" in done.stderr
    # A disk that is full: the size of files is limited.
    target = tmp_path / "images.json"
    target.write_text("the former export")
    limited = f"ulimit -f 0; exec {BIN}/nodepool -c {some_site.config('tool')} export-image-data {target}"
    done = subprocess.run(["bash", "-c", "trap '' XFSZ; " + limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert target.read_text() == "the former export"
    assert not pathlib.Path(f"{target}.part").exists()
