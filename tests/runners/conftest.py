"""A counterpart of GitHub for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_GITHUB names the folder that holds the commands `github-up` and `github-down`;
without it these tests are skipped.
"""
import os
import pathlib

import pytest

from github_site import Github, RunnersSite


@pytest.fixture(scope="session")
def github_process(tmp_path_factory):
    github = Github(tmp_path_factory.mktemp("github"), pathlib.Path(os.environ["NODEPOOL_TEST_GITHUB"]))
    github.up()
    yield github
    github.down()


@pytest.fixture
def github(github_process):
    """The service as it is at the start."""
    github_process.post("/reset")
    yield github_process
    github_process.post("/reset")


@pytest.fixture
def runners(tmp_path, shared_zookeeper, github):
    """An empty tree, hosts of this computer, and a service."""
    site = RunnersSite(tmp_path, shared_zookeeper.hosts, github)
    yield site
    site.stop()
