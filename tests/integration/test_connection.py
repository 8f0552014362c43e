"""Where and how the programs connect (coordination.md 2, 17.40, 17.41)."""
import time
import uuid

import pytest

from nodepool_helpers import Installation
from services import LOOPBACK, make_certificates, wait_for


# coordination.17.40
def test_17_40_everything_is_below_the_chroot(site):
    site.launcher()
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    whole = Installation(site.folder, site.hosts)
    try:
        roots = whole.tree().children("/")
        assert "nodepool" not in roots
        assert site.chroot.strip("/") in roots
    finally:
        whole.stop()


@pytest.fixture
def tls_site(tmp_path, shared_zookeeper, certificates):
    files = {"cert": str(certificates / "cert.pem"), "key": str(certificates / "key.pem"),
             "ca": str(certificates / "ca.pem")}
    site = Installation(tmp_path, f"{LOOPBACK}:{shared_zookeeper.tls_port}", chroot=f"/tls-{uuid.uuid4().hex}",
                        tls=files)
    # The observer goes another way.
    site.plain = Installation(tmp_path, shared_zookeeper.hosts, chroot=site.chroot)
    site.observer = site.plain.observer
    site.plain.observer()
    yield site
    site.stop()
    site.plain.stop()


def test_tls_with_a_client_certificate(tls_site):
    """coordination.17.41: the certificate's name is no host's name, and accepted."""
    tls_site.launcher()
    tree = tls_site.plain.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    assert tls_site.tool("list").returncode == 0


# coordination.17.41
def test_17_41_an_unknown_ca_is_refused(tls_site, tmp_path):
    stranger = make_certificates(tmp_path / "stranger", "stranger")
    config = tls_site.config(zookeeper_tls={**tls_site.settings["zookeeper-tls"], "ca": str(stranger / "ca.pem")})
    launcher = tls_site.launcher(config, wait=False)
    wait_for(lambda: "certificate" in launcher.output().lower(), "the log names the certificate")
    assert tls_site.plain.tree().components("launcher") == {}


def test_an_unreadable_certificate_is_named(tls_site):
    config = tls_site.config("broken", zookeeper_tls={**tls_site.settings["zookeeper-tls"], "cert": "/no/such.pem"})
    done = tls_site.tool("list", config=config)
    assert done.returncode == 1
    assert "/no/such.pem" in done.stderr


def test_tls_is_required_towards_other_hosts(site):
    """D-03."""
    config = site.config("remote", zookeeper_servers=[{"host": "192.0.2.1", "port": 2181}])
    done = site.tool("list", config=config)
    assert done.returncode == 1
    assert "zookeeper-tls" in done.stderr


def test_the_tool_waits_for_zookeeper_and_says_so(private_site):
    """operations.5.2, 16.10."""
    private_site.zookeeper.stop()
    tool = private_site.start_tool("list", "--wait-for-server")
    wait_for(lambda: "Retrying zookeeper connection" in tool.output(), "the retry is logged", 15)
    private_site.zookeeper.start()
    assert tool.wait(30) == 0
    assert "| ID " in tool.output()


def test_the_tool_waits_ten_seconds_unless_told_otherwise(private_site):
    """operations.5.2, 16.10, D-72."""
    private_site.zookeeper.stop()
    for words, seconds in (([], 10), (["--wait-for-server=1"], 1)):
        begin = time.monotonic()
        done = private_site.tool("list", *words)
        assert done.returncode == 1 and done.stdout == ""
        assert f"no ZooKeeper server answered within {seconds} s (" in done.stderr.splitlines()[-1]
        assert time.monotonic() - begin >= seconds
        assert words or len(done.stderr.splitlines()) == 1


# operations.16.10
def test_config_validate_needs_no_zookeeper(private_site):
    private_site.zookeeper.stop()
    assert private_site.tool("config-validate").returncode == 0
    bad = private_site.folder / "bad.yaml"
    bad.write_text("labels: [{name: small, min-redy: 1}]\n")
    done = private_site.tool("config-validate", config=bad)
    assert done.returncode == 1
    assert "min-ready" in done.stderr, "the nearest spelling"
