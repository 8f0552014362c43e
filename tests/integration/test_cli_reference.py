"""Manual pages and completions, made from the declared command lines, in the programs that read them."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from nodepool_helpers import BIN
from services import free_port

PROGRAMS = ["nodepool", "nodepool-launcher", "nodepool-builder", "nodepool-runners", "nodepoold"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([BIN / "cli_reference", folder], check=True, timeout=60)
    return folder


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing")
def test_manual_pages_are_in_order(reference):
    pages = sorted((reference / "man").iterdir())
    assert [page.name for page in pages] == ["nodepool-builder.8", "nodepool-launcher.8", "nodepool-runners.8", "nodepool-standalone.8", "nodepool.1", "nodepoold.8"]
    for page in pages:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), page
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                                  env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
            assert done.returncode == 0 and done.stderr == ""
            assert "SEE ALSO" in done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where the shells find the program and a configuration, whose ZooKeeper does not run."""
    config = tmp_path_factory.mktemp("configuration") / "nodepool.yaml"
    config.write_text("labels: [{name: large}, {name: small}]\nproviders: [{name: cloud-a, driver: fake}]\n"
                      "diskimages: [{name: debian}]\n"
                      f"embedded-zookeeper: {{state-dir: {config.parent}, port: {free_port()}}}\n")
    return {"PATH": f"{BIN.resolve()}:/usr/bin:/bin", "NODEPOOL_CONFIG": str(config)}


def complete(reference, *words, environment=None) -> list[str]:
    """What bash offers for the last of the words."""
    script = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
function=$(complete -p "$1"); function=${function#*-F }; ${function%% *} "$1" "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-u", "-c", script, "bash", reference / "bash" / words[0], *words],
                          capture_output=True, text=True, timeout=30, cwd=reference,
                          env=environment or {"PATH": "/usr/bin:/bin"})
    # compopt works only in a completion that a terminal has begun.
    complaints = [line for line in done.stderr.splitlines() if "compopt" not in line]
    assert (done.returncode, complaints) == (0, [])
    return done.stdout.split()


def test_bash_offers_values(reference, environment):
    def offered(*words):
        return complete(reference, "nodepool", *words, environment=environment)

    assert offered("list", "--state", "re") == ["ready"]
    assert offered("request-list", "--state", "f") == ["fulfilled", "failed"]
    assert offered("list", "--color", "") == ["auto", "always", "never"]
    assert offered("list", "--label", "") == ["large", "small"]
    assert offered("delete", "--provider", "") == ["cloud-a"]
    assert offered("info", "c") == ["cloud-a"]
    assert offered("request", "s") == ["small"]
    assert offered("image-build", "") == ["debian"]
    assert offered("hold", "") == [], "no server is there to ask"
    assert offered("list", "--deb") == ["--debug"], "the general options are taken behind the command, too"
    assert offered("list", "-c", environment["NODEPOOL_CONFIG"][:-2]) == [environment["NODEPOOL_CONFIG"]]


def test_bash_asks_with_the_configuration_of_the_line(reference, environment, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("labels: [{name: other}]\n")
    assert complete(reference, "nodepool", "-c", str(other), "request", "", environment=environment) == ["other"]
    assert complete(reference, "nodepool", "request", "-c", str(other), "o", environment=environment) == ["other"]


def test_bash_completes_commands_options_and_values(reference):
    assert complete(reference, "nodepool", "image-b") == ["image-build"]
    assert set(complete(reference, "nodepool", "image-")) > {"image-list", "image-status", "image-pause"}
    assert complete(reference, "nodepool", "--deb") == ["--debug"]
    assert complete(reference, "nodepool", "list", "--det") == ["--detail"]
    assert complete(reference, "nodepool", "--debug", "-c", "list", "hold", "--re") == ["--reason"], "list is a value"
    assert "--wait" in complete(reference, "nodepool", "request", "-")
    assert complete(reference, "nodepool", "migrate", "to-em") == ["to-embedded"]
    assert complete(reference, "nodepool", "standalone", "--build") == ["--build-workers"]
    assert complete(reference, "nodepool", "-c", "ba") == ["bash"], "a file"
    assert complete(reference, "nodepool", "export-image-data", "ba") == ["bash"]
    assert complete(reference, "nodepool", "list", "ba") == []
    assert complete(reference, "nodepool", "request", "--priority", "") == [], "a number is the user's business"
    assert complete(reference, "nodepool-launcher", "--no") == ["--no-webapp"]
    assert complete(reference, "nodepool-builder", "--drivers-dir", "z") == ["zsh"], "a directory"


def shown(output: str) -> str:
    """What a terminal makes of it: without escape sequences and what was taken back."""
    return re.sub(".\x08", "", re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", output))


def typed(reference, shell, *lines, until, environment=None):
    """What an interactive shell shows for the lines (with tabs), up to the last of `until`."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(reference)
        os.execvpe(shell[0], shell, {"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "> ", "INPUTRC": "/dev/null",
                                     "HOME": str(reference), "HISTFILE": "/dev/null", **(environment or {})})
    try:
        for line in lines:
            os.write(terminal, line.encode() + b"\n")
        output, deadline = "", time.monotonic() + 60
        while (missing := [text for text in until if text not in shown(output)]) and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.2)[0]:
                output += os.read(terminal, 4096).decode()
        assert missing == [], shown(output)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_bash_completes_at_a_terminal(reference):
    """Tab in an interactive bash, where compopt works as well."""
    typed(reference, ["bash", "--norc", "--noprofile", "-i"],
          "bind 'set bell-style none'; source bash/nodepool",
          "false && nodepool image-bu\t -", "false && nodepool -c ba\tnodepool",
          until=["nodepool image-build  -", "nodepool -c bash/nodepool"])


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is missing")
def test_zsh_completes_at_a_terminal(reference, environment):
    for program in PROGRAMS:
        subprocess.run(["zsh", "-n", reference / "zsh" / f"_{program}"], check=True, timeout=30)
    typed(reference, ["zsh", "-f", "-i"],
          "fpath=($PWD/zsh $fpath); autoload -Uz compinit; compinit -u -d dump; unsetopt beep",
          "false && nodepool image-bu\t -", "false && nodepool list --det\t -",
          "false && nodepool migrate to-em\t -", "false && nodepool-launcher --no-w\t -",
          "false && nodepool -c ba\tnodepool", "false && nodepool request sm\t -",
          "false && nodepool list --state rea\t -", "false && nodepool list --label la\t --deb\t -",
          until=["nodepool image-build -", "nodepool list --detail -", "nodepool migrate to-embedded -",
                 "nodepool-launcher --no-webapp -", "nodepool -c bash/nodepool", "nodepool request small -",
                 "nodepool list --state ready -", "nodepool list --label large --debug -"], environment=environment)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is missing")
def test_fish_completes(reference, environment):
    def offered(line, program="nodepool"):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {reference}/fish/{program}.fish; complete -C '{line}'"],
                              capture_output=True, text=True, timeout=60, env={"HOME": str(reference), **environment})
        assert done.stderr == ""
        return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

    assert offered("nodepool image-b") == ["image-build"]
    assert offered("nodepool list --det") == ["--detail"]
    assert offered("nodepool migrate to-em") == ["to-embedded"]
    assert offered("nodepool-launcher --no-w", "nodepool-launcher") == ["--no-webapp"]
    assert offered("nodepool list --state rea") == ["ready"]
    assert offered("nodepool list --label ") == ["large", "small"]
    assert offered("nodepool info ") == ["cloud-a"]
    assert offered("nodepool list --deb") == ["--debug"]
