"""Logging files of the programs (configuration.md 14, operations.md 8)."""
import json
import os
import signal
import subprocess

from nodepool_helpers import BIN
from services import wait_for

INI = """[loggers]
keys=root,np
[handlers]
keys=file
[formatters]
keys=line
[logger_root]
level=WARNING
handlers=
[logger_np]
level=INFO
handlers=file
qualname=nodepool
[handler_file]
class=FileHandler
formatter=line
args=('{path}',)
[formatter_line]
format=%(levelname)s|%(name)s|%(message)s
"""


# D-53
def test_a_launcher_logs_where_the_file_says(site):
    path = site.folder / "np.log"
    setup = site.folder / "logging.ini"
    setup.write_text(INI.format(path=path))
    launcher = site.launcher(site.config(), options=["-l", setup])
    site.tree().wait_request(site.tree().add_request(["small"]), "fulfilled")
    assert "INFO|nodepool.NodePool|Nodepool launcher " in path.read_text()
    assert launcher.output() == ""
    path.rename(site.folder / "np.log.old")
    os.kill(launcher.child.pid, signal.SIGHUP)
    wait_for(path.exists, "the log is opened anew")
    site.tree().wait_request(site.tree().add_request(["small"]), "fulfilled")
    wait_for(lambda: "Fulfilled with" in path.read_text(), "the new file is written to")


def test_json_lines(site):
    setup = site.folder / "logging.yaml"
    setup.write_text(json.dumps({
        "version": 1, "formatters": {"json": {"class": "nodepool.logconfig.JsonFormatter"}},
        "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "json"}},
        "root": {"level": "INFO", "handlers": ["out"]}}))
    launcher = site.launcher(site.config(), options=["-l", setup])
    request = site.tree().add_request(["small"], event_id="e1")
    site.tree().wait_request(request, "fulfilled")
    wait_for(lambda: "Fulfilled with" in launcher.output(), "the end is logged")
    records = [json.loads(line) for line in launcher.output().splitlines()]
    found, = [entry for entry in records if entry["message"].startswith("Fulfilled with")]
    assert (found["event"], found["node_request"], found["level"]) == ("e1", request, "INFO")


def test_a_file_that_cannot_be_used_is_told(site):
    for text, what in [("version: 1\nroot: {level: LOUD}\n", "LOUD is not a level"),
                       ("version: 1\nhandlers: {a: {class: FileHandler, filename: /dev/null/x}}\n", "cannot log to /dev/null/x")]:
        setup = site.folder / "logging.yaml"
        setup.write_text(text)
        launcher = site.launcher(site.config(), wait=False, options=["-l", setup])
        wait_for(lambda: not launcher.is_running(), "the launcher ends")
        assert launcher.child.returncode == 1 and what in launcher.output()
        shown = site.tool("-l", setup, "list")
        assert shown.returncode == 1 and what in shown.stderr
    missing = site.tool("-l", site.folder / "none", "list")
    assert missing.returncode == 1 and "Unable to read logging config file at" in missing.stderr


def test_debug_wins_over_the_file_of_the_tool(site):
    """operations.5.1"""
    setup = site.folder / "logging.yaml"
    setup.write_text("version: 1\nhandlers: {none: {class: NullHandler}}\nroot: {level: INFO, handlers: [none]}\n")
    assert site.tool("-l", setup, "list", check=True).stderr == ""
    shown = site.tool("--debug", "-l", setup, "list", check=True)
    assert "INFO nodepool.zk.ZooKeeperClient: Connected to ZooKeeper" in shown.stderr, "which is not shown without it"
    shown = subprocess.run([BIN / "nodepool", "-c", site.config("tool"), "-l", "~/logging.yaml", "list"], check=True,
                           capture_output=True, text=True, timeout=60, env={**os.environ, "HOME": str(site.folder)})
    assert shown.stderr == "", "the file of the home directory is read"
