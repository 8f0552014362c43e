"""./run runners: from a token to a green job, here on this computer, as no machine of its own reaches the counterpart."""
import io
import os
import signal
import subprocess
import tarfile

import pytest

from nodepool_helpers import BIN, ROOT
from services import Process, wait_for

RUN = ROOT / "tools/run-nodepool"  # ./run without installing and building


@pytest.fixture
def archive(tmp_path, github):
    """The runner as GitHub packs it."""
    path = tmp_path / "actions-runner-linux-x64.tar.gz"
    program = open(github.env["COUNTERPART_RUNNER"] + "/run.sh", "rb").read()
    with tarfile.open(path, "w:gz") as packed:
        entry = tarfile.TarInfo("./run.sh")
        entry.size, entry.mode = len(program), 0o755
        packed.addfile(entry, io.BytesIO(program))
    return path


def words(github, archive, folder, *more):
    return [RUN, "runners", "--github", "octo/app", "--github-url", github.env["GITHUB_URL"], "--github-ca", github.env["GITHUB_CA"],
            "--runner", archive, "--state-dir", folder, "--simulated", *more]


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if "GITHUB_TOKEN" not in name}
    return kept | {"NODEPOOL_BIN": str(BIN)} | variables


@pytest.fixture
def started(tmp_path, github, archive):
    process = Process(words(github, archive, tmp_path / "state"), tmp_path / "run.log", env=environment(GITHUB_TOKEN=github.env["GITHUB_TOKEN"]))
    yield process
    process.send(signal.SIGINT)
    wait_for(lambda: not process.is_running(), "./run ends", 60)


# RUN-75
def test_a_job_of_the_repository_runs(started, github, tmp_path):
    wait_for(lambda: "runs-on: nodepool" in started.output(), "GitHub can send jobs", 60)
    assert started.output().startswith("No machines of their own for the jobs: ")
    github.queue(labels=["nodepool"])
    wait_for(lambda: github.states() == ["succeeded"], "the job is green", 60)
    wait_for(lambda: "over, and its node is given back" in started.output(), "its end is said", 30)
    assert "job" in started.output() and "octo/app" in started.output()
    assert github.env["GITHUB_TOKEN"] not in started.output()
    assert (tmp_path / "state/runners/secure.yaml").stat().st_mode & 0o777 == 0o600
    started.send(signal.SIGINT)
    wait_for(lambda: not started.is_running(), "./run ends", 60)
    assert not (tmp_path / "state/runners/secure.yaml").exists()


def refused(github, archive, folder, *more, **variables):
    done = subprocess.run(words(github, archive, folder, *more), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env=environment(**variables))
    assert done.returncode == 1
    return done.stderr


def test_without_a_token_it_says_where_it_comes_from(tmp_path, github, archive):
    assert "set GITHUB_TOKEN" in refused(github, archive, tmp_path)


def test_a_wrong_token_is_told_with_what_to_do(tmp_path, github, archive):
    said = refused(github, archive, tmp_path, GITHUB_TOKEN="ghp_wrong")
    assert "they get no jobs" in said and "401" in said and "Correct the credentials" in said
    assert "ghp_wrong" not in said


def test_an_archive_that_is_none_is_refused(tmp_path, github):
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz"):
        pass
    assert "has no run.sh" in refused(github, other, tmp_path, GITHUB_TOKEN=github.env["GITHUB_TOKEN"])


def test_without_an_offer_of_github_an_archive_has_to_be_named(tmp_path, github):
    line = [word for word in words(github, "", tmp_path) if word not in ("--runner", "")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, env=environment(GITHUB_TOKEN=github.env["GITHUB_TOKEN"]))
    assert done.returncode == 1 and "--runner names an archive" in done.stderr


@pytest.mark.parametrize("more, said", [(["--github", "octo"], "--github OWNER/REPO"), (["--github-url", "http://x"], "address of a GitHub")])
def test_wrong_words_are_refused(tmp_path, github, archive, more, said):
    assert said in refused(github, archive, tmp_path, *more, GITHUB_TOKEN="x")
