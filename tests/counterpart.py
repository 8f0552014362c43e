"""Clouds that commands start and stop, counterparts whose faults a control port switches, and Nodepool in one of them."""
import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import urllib.request
import uuid

from nodepool_helpers import BIN, Installation
from services import free_port, is_listening


@contextlib.contextmanager
def running(variable: str, folder: pathlib.Path, make):
    """A cloud, from make(state, commands), that is up meanwhile. The environment variable names the folder of its
    commands, and <variable>_STATE the state folder of one that is left running; else `folder` is it."""
    kept = os.environ.get(f"{variable}_STATE")
    cloud = make(pathlib.Path(kept) if kept else folder, pathlib.Path(os.environ[variable]))
    cloud.up()
    yield cloud
    if not kept:
        cloud.down("--remove")


def free_block(length: int) -> int:
    """The first of so many free ports in a row, below those that the kernel assigns."""
    while True:
        first = random.randrange(17000, 30000, 10)
        if not any(is_listening(port) for port in range(first, first + length)):
            return first


class Counterpart:
    """A cloud of which `<name>-up FOLDER` starts a counterpart and `<name>-down FOLDER` stops it."""

    name = ""  # of the commands
    control_variable = ""  # in env.sh: the address of the control port
    own = re.compile(r"$^")  # variables that the tests do not take from whoever runs them

    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state = state
        self.commands = commands

    def up(self, *words):
        port_file = self.state / "ssh-port"
        self.state.mkdir(exist_ok=True)
        self.ssh_port = int(port_file.read_text()) if port_file.exists() else free_port()
        port_file.write_text(str(self.ssh_port))
        start = [self.commands / f"{self.name}-up", self.state, "--ssh-port", self.ssh_port]
        try:
            self._run(*start, *self._ports(), *words)
        except AssertionError as fault:
            # Another program has taken one of the ports meanwhile.
            if "Address already in use" not in str(fault):
                raise
            self._run(*start, *self._ports(), *words)
        self.variables = {}
        for line in (self.state / "env.sh").read_text().splitlines():
            if line.startswith("export "):
                name, value = shlex.split(line)[1].split("=", 1)
                self.variables[name] = value

    def _ports(self) -> list:
        """Several that start at the same moment would choose the same ones. One that is left running keeps its own."""
        if (self.state / "env.sh").exists():
            return []
        return ["--port", free_block(4)]

    def down(self, *words):
        self._run(self.commands / f"{self.name}-down", self.state, *words)

    @staticmethod
    def _run(*words):
        done = subprocess.run([str(word) for word in words], timeout=600, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]

    def environment(self, **changes) -> dict[str, str]:
        """For a program that is to use the account; None removes a variable."""
        result = {name: value for name, value in os.environ.items() if not self.own.match(name)}
        result.update(self.variables)
        for name, value in changes.items():
            result.pop(name, None)
            if value is not None:
                result[name] = str(value)
        return result

    def control(self, path: str, body=None, method: str | None = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.variables[self.control_variable] + path, data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def reset(self):
        self.control("/reset", {})
        self.control("/log", method="DELETE")

    def set(self, **settings):
        self.control("/settings", settings)

    def fault(self, **fault):
        self.control("/faults", fault)

    def calls(self, action: str = "") -> list[dict]:
        return [call for call in self.control("/log") if not action or call["action"] == action]

    def refused(self, action: str = "") -> list[dict]:
        return [call for call in self.calls(action) if call.get("error")]

    def count(self, action: str) -> int:
        return len(self.calls(action))


class CounterpartSite(Installation):
    """Nodepool with one provider in a counterpart; its class has provider(**settings), the provider's section."""

    def __init__(self, folder: pathlib.Path, hosts: str, counterpart: Counterpart):
        super().__init__(folder, hosts, chroot=self._new_chroot(counterpart))
        self.counterpart = counterpart
        self._first_folder = self.folder
        self.settings["providers"] = [self.provider()]

    @staticmethod
    def _new_chroot(counterpart: Counterpart) -> str:
        return f"/{counterpart.name}-{uuid.uuid4().hex}"

    def begin_anew(self, name: str):
        """An empty counterpart, and a tree and a folder that nothing has used."""
        self.counterpart.reset()
        self.chroot = self._new_chroot(self.counterpart)
        for server in self.settings["zookeeper-servers"]:
            server["chroot"] = self.chroot
        self.__dict__.pop("_observer", None)
        self.folder = self._first_folder / name
        self.folder.mkdir()

    def launcher(self, config=None, env=None, **named):
        return super().launcher(config, env=self.counterpart.environment() if env is None else env, **named)

    def validated(self, provider: dict) -> dict:
        """The section as the validator takes it."""
        return provider

    def validate_online(self, env: dict[str, str] | None = None, **settings) -> subprocess.CompletedProcess:
        config = self.config("online", providers=[self.validated(self.provider(**settings))])
        return subprocess.run([BIN / "nodepool", "-c", config, "config-validate", "--online"],
                              env=env or self.counterpart.environment(), capture_output=True, text=True, timeout=60)

    def node(self, tree, **extra) -> tuple[list, dict]:
        """A node in use, and its record."""
        held = tree.use(tree.add_request(["small"], **extra))
        return held, tree.node(held[0][0])
