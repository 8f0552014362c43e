"""docs/operator/install.md and docs/zuul.md on a fresh Debian, word for word (./test --first-contact).

The one machine is also the host of Zuul and the machine of the lab. A container's image, which comes from a registry, is
the package tests' matter.
"""
import os

import pytest
import yaml

from debian_tree import CHECKOUT, Machine
from nodepool_helpers import fake_provider
from pages import Page
from services import wait_for
from shell import Shell

pytestmark = pytest.mark.skipif(not os.environ.get("NODEPOOL_TEST_FIRST_CONTACT"), reason="only with ./test --first-contact")

INSTALL = Page.read("docs/operator/install.md")
ZUUL = Page.read("docs/zuul.md")
(START,) = INSTALL.section("Without systemd").commands()
CONFIGURATION = "/etc/nodepool/nodepool.yaml"
# What the units find on a host: a ZooKeeper, here that of another Nodepool.
ZOOKEEPER = {"embedded-zookeeper": {"state-dir": "/root/zookeeper"}, "webapp": {"port": 8006}, "labels": [], "providers": []}
SITE = {"zookeeper-servers": [{"host": "localhost", "port": 2181}], "images-dir": "/var/lib/nodepool/images",
        "labels": [{"name": "small"}], "providers": [fake_provider()]}


@pytest.fixture(scope="module")
def installed(newcomer, tmp_path_factory):
    """The newcomer's machine with the package in it, and with what the pages need of the network later."""
    needed = [line for line in INSTALL.section("Units").commands() if line.startswith("apt ")]
    with Shell(newcomer.words("env", "-C", CHECKOUT), tmp_path_factory.mktemp("log")) as shell:
        for line in [*INSTALL.section("The package").commands(), *needed]:
            shell.succeed(line, seconds=1800)
    newcomer.install("python3-kazoo", "python3-yaml")  # for the part of Zuul
    return newcomer


@pytest.fixture
def shell(installed, tmp_path):
    """In the checkout on the machine, which has just been started."""
    with Machine(installed, "install") as machine, Shell(machine.words("env", "-C", CHECKOUT), tmp_path) as opened:
        yield opened
        print(machine.journal())  # shown with a failure
    # The next test's machine is configured by itself and starts nothing by itself.
    for path in [installed.path(CONFIGURATION), *installed.path("/etc/systemd/system").glob("*/nodepool-*")]:
        path.unlink(missing_ok=True)


@pytest.fixture
def site(installed, shell):
    """A configuration for the units, and the ZooKeeper that it names."""
    installed.path("/root/zookeeper.yaml").write_text(yaml.safe_dump(ZOOKEEPER))
    installed.path(CONFIGURATION).write_text(yaml.safe_dump(SITE))
    shell.succeed("install -d -o nodepool -g nodepool /var/lib/nodepool/images")
    shell.start("nodepool standalone -c /root/zookeeper.yaml")


def units_commands() -> list[str]:
    return [line for line in INSTALL.section("Units").commands() if not line.startswith("apt ")]


def test_units_wait_for_a_configuration(shell):
    for line in units_commands():
        shell.succeed(line)
    for unit in ("nodepool-launcher", "nodepool-builder"):
        shown = shell.succeed(f"systemctl show -p ActiveState,ConditionResult {unit}").split()
        assert shown == ["ActiveState=inactive", "ConditionResult=no"]


def test_units_with_a_configuration(shell, site):
    for line in units_commands():
        shell.succeed(line)
    for unit in ("nodepool-launcher", "nodepool-builder"):
        assert shell.run(f"systemctl is-active {unit}").stdout == "active\n", shell.run(f"journalctl -u {unit}").stdout
        shell.succeed(f"systemctl reload {unit}")
    assert "fulfilled" in shell.succeed("nodepool request small --wait --hold-for 1s")
    shell.succeed("systemctl stop nodepool-launcher nodepool-builder")


def test_without_systemd_errors_are_reported_at_once(shell):
    refused = shell.run(START)
    assert refused.returncode == 1 and CONFIGURATION in refused.stderr


def test_without_systemd(shell, site):
    shell.succeed(START)
    assert "fulfilled" in shell.succeed("nodepool request small --wait --wait-for-server --hold-for 1s")
    shell.succeed("test -s /var/log/nodepool/nodepool.log && kill $(cat /run/nodepool/nodepool.pid)")


def test_completion(shell):
    (line,) = INSTALL.section("Completion").commands()
    assert "nodepool" in shell.succeed(f"{line} && complete -p nodepool")


def test_the_page_for_zuul(installed, shell):
    (certificates,) = ZUUL.blocks("sh")
    configuration, job = ZUUL.blocks("yaml")
    (section,) = ZUUL.blocks("ini")
    shell.succeed(certificates + ZUUL.code("chown "))
    shell.succeed("mkdir -p /etc/zuul/zk && cd /etc/nodepool/zk && cp ca.pem zuul.pem zuul.key /etc/zuul/zk")
    installed.path(CONFIGURATION).write_text(configuration)
    installed.path("/etc/zuul/zuul.conf").write_text(section)
    installed.path("/root/.zuul.yaml").write_text(job)

    check, start, look = ZUUL.section("Nodepool").commands()
    shell.succeed(check)
    shell.succeed(start)
    wait_for(lambda: "ready" in shell.succeed(look), "the list shows one node, ready", pause=0.5)
    assert "lab1.example.org" in shell.succeed("PYTHONPATH=tools python3 tests/zuul_job.py /etc/zuul/zuul.conf /root/.zuul.yaml")
    (waiting,) = ZUUL.section("When a job does not start").commands()
    shell.succeed(waiting)
    assert "Verify return code: 0 (ok)" in shell.succeed("cd /etc/zuul/zk && " + ZUUL.code("openssl s_client"))
    shell.succeed("systemctl reload nodepool-standalone && systemctl stop nodepool-standalone")
