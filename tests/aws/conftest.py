"""A counterpart of AWS for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_AWS names the folder that holds the commands `aws-up` and `aws-down`; without it
these tests are skipped. NODEPOOL_TEST_AWS_STATE names the state folder of one that is left running.
"""
import pytest

from aws_account import Account, AwsSite
from counterpart import running


@pytest.fixture(scope="session")
def aws_process(tmp_path_factory):
    with running("NODEPOOL_TEST_AWS", tmp_path_factory.mktemp("aws"), Account) as account:
        yield account


@pytest.fixture
def account(aws_process):
    """An account as it is at the start."""
    aws_process.reset()
    yield aws_process
    aws_process.reset()


@pytest.fixture
def aws_site(tmp_path, shared_zookeeper, account):
    """An empty tree, and a provider in that account."""
    site = AwsSite(tmp_path, shared_zookeeper.hosts, account)
    yield site
    site.stop()
