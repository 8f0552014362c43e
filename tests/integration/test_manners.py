"""How the command line speaks: where it finds its configuration, what its errors look like, what help it offers."""
import os
import re
import subprocess

import pytest
import yaml

from nodepool_helpers import BIN
from services import Process, free_port, wait_for
from standalone import Standalone

TIME_STAMP = re.compile(r"\d{4}-\d\d-\d\d ")


def nodepool(*words, **environment) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name != "NODEPOOL_CONFIG"}
    return subprocess.run([BIN / "nodepool", *words], capture_output=True, text=True, timeout=60,
                          env={**clean, **environment})


def one_line(done: subprocess.CompletedProcess) -> str:
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


@pytest.fixture
def idle(tmp_path):
    """A configuration whose standalone does not run."""
    path = tmp_path / "nodepool.yaml"
    path.write_text(yaml.safe_dump({
        "embedded-zookeeper": {"state-dir": str(tmp_path / "state"), "port": free_port()},
        "labels": [{"name": "small"}, {"name": "large"}], "diskimages": [{"name": "debian"}],
        "providers": [{"name": "cloud-a", "driver": "fake"}]}))
    return path


# operations.5.1
@pytest.mark.parametrize("words", [[BIN / "nodepool", "list"], [BIN / "nodepool-launcher", "-f"],
                                   [BIN / "nodepool", "standalone"]])
def test_a_missing_configuration_is_one_line(tmp_path, words):
    missing = tmp_path / "none.yaml"
    done = subprocess.run(words, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "NODEPOOL_CONFIG": str(missing)})
    assert done.returncode == 1
    name = "nodepool standalone" if "standalone" in words else words[0].name
    assert one_line(done) == (f"{name}: no configuration: {missing} does not exist; "
                              "name one with -c FILE or NODEPOOL_CONFIG")


# operations.5.1
def test_the_configuration_is_that_of_c_else_that_of_the_environment(idle, tmp_path):
    assert nodepool("complete", "labels", NODEPOOL_CONFIG=str(idle)).stdout == "large\nsmall\n"
    other = tmp_path / "other.yaml"
    other.write_text("labels: [{name: other}]\n")
    for words in (["-c", other, "complete", "labels"], ["complete", "labels", "-c", other]):
        assert nodepool(*words, NODEPOOL_CONFIG=str(idle)).stdout == "other\n"


# operations.5.2
def test_a_standalone_that_does_not_run_is_named_at_once(idle):
    done = nodepool("-c", idle, "list")
    assert done.returncode == 1
    line = one_line(done)
    assert line.startswith("nodepool: nodepool standalone does not run (127.0.0.1:")
    assert line.endswith("Connection refused); start it, or wait for it with --wait-for-server")


# operations.8.1
def test_log_lines_are_those_of_a_log_where_one_is_configured(idle, tmp_path):
    assert TIME_STAMP.match(nodepool("-c", idle, "list", "--debug").stderr)
    logging = tmp_path / "logging.yaml"
    logging.write_text(yaml.safe_dump({
        "version": 1, "formatters": {"f": {"format": "%(name)s says %(message)s"}},
        "handlers": {"h": {"class": "logging.StreamHandler", "formatter": "f"}},
        "root": {"level": "INFO", "handlers": ["h"]}}))
    assert nodepool("list", "-c", idle, "-l", logging).stderr.startswith("nodepool.cmd.nodepoolcmd says nodepool standal")


@pytest.mark.parametrize("words, line", [
    (["lsit"], "nodepool: there is no command lsit; did you mean list?"),
    (["help", "lst"], "nodepool: there is no command lst; did you mean list?"),
    (["list", "--sate", "ready"], "nodepool list: there is no option --sate; did you mean --state?"),
    (["--versoin"], "nodepool: there is no option --versoin; did you mean --version?"),
    (["standalone", "--bogus"], "nodepool standalone: there is no option --bogus; see nodepool standalone --help")])
def test_a_usage_error_is_one_line_with_the_nearest(words, line):
    done = nodepool(*words)
    assert done.returncode == 2
    assert one_line(done) == line


@pytest.mark.parametrize("place", ["before", "behind"])
def test_standalone_takes_its_configuration_before_and_behind(tmp_path, place):
    running = Standalone(tmp_path)
    options = ["-c", running.config, "--debug"]
    words = [*options, "standalone"] if place == "before" else ["standalone", *options]
    running.process = Process([BIN / "nodepool", *words], tmp_path / "standalone.log")
    try:
        assert running.wait_ready()
    finally:
        running.process.stop()


def test_values_for_completion_come_quickly_and_never_with_an_error(idle, site):
    assert nodepool("complete", "providers", "-c", idle).stdout == "cloud-a\n"
    assert nodepool("complete", "images", "-c", idle).stdout == "debian\n"
    silent = nodepool("complete", "nodes", "-c", idle)
    assert (silent.stdout, silent.stderr, silent.returncode) == ("", "", 1)
    node = site.tree().add_node()
    assert site.tool("complete", "nodes", check=True).stdout == f"{node}\n"


# operations.5.5
def test_nodes_are_chosen_by_what_they_are(site):
    tree = site.tree()
    ready = [tree.add_node(), tree.add_node()]
    elsewhere = tree.add_node(provider="elsewhere")
    refused = site.tool("hold", "--provider", "fake-cloud")
    assert refused.returncode == 1 and one_line(refused) == "nodepool: 2 nodes match; --yes is missing to hold them all"
    assert {tree.node(node)["state"] for node in ready} == {"ready"}
    assert site.tool("hold", "--provider", "fake-cloud", "--state", "ready", "--yes").returncode == 0
    assert {tree.node(node)["state"] for node in ready} == {"hold"}
    assert tree.node(elsewhere)["state"] == "ready"
    assert site.tool("delete", "--provider", "elsewhere").returncode == 0, "one needs no --yes"
    assert tree.node(elsewhere)["state"] == "deleting"
    short = [str(int(node)) for node in ready]
    done = site.tool("delete", *short)
    assert done.returncode == 0 and all(node in done.stdout for node in ready)


# operations.5.8
def test_images_are_not_imported_while_daemons_run(site, tmp_path):
    tree = site.tree()
    tree.zk.create("/nodepool/images/deb/builds/0000000001", b'{"state": "ready"}', makepath=True)
    saved = tmp_path / "saved.json"
    done = site.tool("export-image-data", saved, check=True)
    assert done.stdout == "" and done.stderr == f"nodepool: 1 image, 1 build, 0 uploads exported to {saved}\n"
    launcher = site.launcher()
    wait_for(lambda: tree.children("/nodepool/components/launcher"), "the launcher is registered")
    refused = site.tool("import-image-data", saved)
    assert refused.returncode == 1
    assert re.fullmatch(r"nodepool: a launcher runs on \S+; stop all launchers and builders first, or use --force",
                        one_line(refused))
    assert site.tool("import-image-data", saved, "--force").returncode == 0
    assert launcher.is_running()


def test_a_label_that_nobody_offers(site):
    site.launcher()
    tree = site.tree()
    wait_for(lambda: tree.children("/nodepool/components/pool"), "the pools are registered")
    done = site.tool("request", "smal", "--wait")
    assert done.returncode == 1
    assert one_line(done) == "nodepool: no launcher offers label smal; did you mean small?"
    assert tree.children("/nodepool/requests") == []
    made = site.tool("request", "smal")
    assert made.returncode == 0 and made.stdout.startswith("200-")
    assert "no launcher offers label smal" in made.stderr
