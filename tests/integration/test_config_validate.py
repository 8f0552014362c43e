"""`nodepool config-validate`: its exit status, its last line, and what it asks online."""
import pathlib
import re

import pytest

from nodepool_helpers import BIN, fake_provider
from services import LOOPBACK, Sshd, free_port
from window import Window

WITHOUT_A_CLOUD = {"name": "vendor", "cloud": "nowhere", "pools": []}


def lines(done) -> list[str]:
    assert done.stdout == "", "a script may read standard output"
    return done.stderr.splitlines()


def words(done, level: str) -> list[str]:
    return [line for line in lines(done) if f" {level} " in line]


def test_the_last_line_says_what_is_good(site):
    config = site.config()
    done = site.tool("config-validate", config=config)
    assert done.returncode == 0
    assert lines(done)[-1].endswith(f"{config} is good: 1 provider, 1 label, 0 images")


# operations.5.9
def test_on_a_terminal_the_findings_are_plain_lines(site):
    config = site.config(providers=[fake_provider(), WITHOUT_A_CLOUD])
    window = Window([BIN / "nodepool", "-c", config, "config-validate"])
    try:
        assert window.wait(30) == 0
        first, warning, last = window.shown().splitlines()
    finally:
        window.close()
    assert first == f"Validating configuration in {config}"
    assert re.match(rf"warning: {config}: line \d+, column \d+: ", warning) and "there is no cloud nowhere" in warning
    assert last == f"{config} has 1 warning; the launcher starts with it"


def test_a_cluster_without_a_kubeconfig_is_a_warning(site, monkeypatch):
    cluster = {"name": "cluster", "driver": "kubernetes", "context": "there", "pools": []}
    config = site.config(providers=[fake_provider(), cluster])
    kubeconfig = site.folder / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(site.folder))
    done = site.tool("config-validate", config=config)
    assert done.returncode == 0
    (warning,) = words(done, "WARNING")
    assert "provider cluster: there is no kubeconfig" in warning and re.search(rf"{config}: line \d+, column \d+: ", warning)
    kubeconfig.write_text("{contexts: [{name: here, context: {cluster: c}}]}")
    (warning,) = words(site.tool("config-validate", config=config), "WARNING")
    assert f"provider cluster: there is no context there in {kubeconfig}" in warning
    assert site.tool("config-validate", "--strict", config=config).returncode == 1


def test_a_cloud_that_cannot_be_used_keeps_nothing_else_from_starting(site):
    config = site.config(providers=[fake_provider(), WITHOUT_A_CLOUD])
    done = site.tool("config-validate", config=config)
    assert done.returncode == 0
    (warning,) = words(done, "WARNING")
    assert "there is no cloud nowhere" in warning and "line " in warning
    assert lines(done)[-1].endswith("has 1 warning; the launcher starts with it")
    strict = site.tool("config-validate", "--strict", config=config)
    assert strict.returncode == 1
    assert len(words(strict, "ERROR")) == 1 and "nowhere" in words(strict, "ERROR")[0]
    launcher = site.launcher(config, wait=False)
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    assert "Error starting provider vendor: " in launcher.output()
    assert "there is no cloud nowhere" in launcher.output()


def test_what_the_daemons_refuse_is_an_error(site):
    config = site.config()
    config.write_text(config.read_text() + "embedded-zookeeper: {tls: {cert: /c}}\n")
    done = site.tool("config-validate", config=config)
    assert done.returncode == 1
    (error,) = words(done, "ERROR")
    assert "embedded-zookeeper.tls: expected cert, key and ca" in error and "line " in error
    assert lines(done)[-1].endswith("has 1 error; the launcher does not start with it")
    assert site.launcher(config, wait=False).wait() == 1, "it is right"


def test_what_is_given_twice_is_an_error_and_the_daemon_warns(site):
    config = site.config()
    config.write_text(config.read_text() + "labels: [{name: small}, {name: other}]\n")
    done = site.tool("config-validate", config=config)
    assert done.returncode == 1
    (error,) = words(done, "ERROR")
    assert "labels is given again; what line " in error and "has no effect" in error
    launcher = site.launcher(config)
    assert "labels is given again; what line " in launcher.output()


# D-101
def test_an_image_whose_name_is_a_path_is_a_warning_and_with_strict_an_error(site):
    config = site.config(diskimages=[{"name": "../../evil", "formats": ["qcow2"]}], **{"images-dir": str(site.folder)})
    done = site.tool("config-validate", config=config)
    assert done.returncode == 0
    (warning,) = words(done, "WARNING")
    assert "no builder builds the diskimage '../../evil': its name contains '/'" in warning
    assert site.tool("config-validate", "--strict", config=config).returncode == 1


def test_the_secure_file_is_read_too(site):
    secure = site.folder / "secure.yaml"
    secure.write_text("diskimages: [{name: unheard-of, env-vars: {A: b}}]\n")
    done = site.tool("-s", secure, "config-validate")
    assert done.returncode == 1
    assert "unknown diskimage unheard-of" in words(done, "ERROR")[0]


def test_a_driver_of_the_wrong_name_is_answered_with_those_there_are(site):
    done = site.tool("config-validate", config=site.config(providers=[{"name": "street", "driver": "lantern"}]))
    assert done.returncode == 1
    (error,) = words(done, "ERROR")
    assert "lantern: unknown driver" in error and "fake, gce, kubernetes, metastatic, openshift, openshiftpods, openstack, static" in error
    assert "NODEPOOL_DRIVERS_PATH" in error


def test_a_driver_file_that_was_cut_off_is_said_to_be_so(site):
    whole = pathlib.Path(BIN / "nodepool").read_bytes()
    folder = site.folder / "drivers"
    folder.mkdir()
    (folder / "cut.so").write_bytes(whole[:100_000])
    done = site.tool("--drivers-dir", folder, "config-validate")
    assert "cut.so is left out: is not a complete ELF file" in done.stderr


def test_online_zookeeper_and_each_provider_have_a_line(site, tmp_path):
    sshd = Sshd(tmp_path / "sshd").start()
    try:
        hosts = [{"name": "127.0.0.1", "connection-port": port, "labels": "small", "timeout": 5}
                 for port in (sshd.port, free_port())]
        good, dead = ({"name": name, "driver": "static", "pools": [{"name": "main", "nodes": [host]}]}
                      for name, host in zip(("good", "dead"), hosts))
        done = site.tool("config-validate", "--online", config=site.config(providers=[fake_provider(), good]))
        assert done.returncode == 0, done.stderr
        assert "ZooKeeper at" in done.stderr and "Provider good is good" in done.stderr
        done = site.tool("config-validate", "--online", config=site.config(providers=[good, dead]))
        assert done.returncode == 1
        (error,) = words(done, "ERROR")
        assert f"Provider dead: host zuul@127.0.0.1:{hosts[1]['connection-port']} cannot be used: " in error
        assert site.tree().nodes() == {}, "nothing is registered"
    finally:
        sshd.stop()


def test_online_zookeeper_that_is_away(site):
    config = site.config(zookeeper_servers=[{"host": LOOPBACK, "port": free_port()}])
    done = site.tool("config-validate", "--online", config=config)
    assert done.returncode == 1
    assert any("cannot be used" in line for line in words(done, "ERROR"))


@pytest.mark.parametrize("options", [["--online"], ["--online", "--strict"]])
def test_a_file_that_cannot_be_used_asks_nobody(site, options):
    done = site.tool("config-validate", *options, config=site.config(build_workers=-1))
    assert done.returncode == 1
    assert "Neither ZooKeeper nor the clouds were asked" in done.stderr
