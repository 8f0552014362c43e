"""A Nodepool in one process, with its files below a folder."""
import json
import pathlib
import re
import shutil
import subprocess

from services import BIN, LOOPBACK, ROOT, Process, free_port, is_listening, wait_for


class Installation:
    """`nodepool standalone` with an example's configuration. A subclass says which machines it has."""

    example = ""  # the configuration, in examples/
    options = ()  # of the program
    labels = ()  # that the demo asks for
    fullness = ""  # what there is when the pool is full
    seconds = 60  # until the pool is full, at most
    hints = ()  # commands to try while it runs; {tool} is its command line, {identity} the option with the key

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "nodepool.yaml"
        self.log = folder / "launcher.log"
        self.key = folder / "key"  # logs in to the machines
        self.launcher = None
        self.started = []

    def start(self, say):
        """Starts everything, from an empty state; `say` gets a line for each step that takes a while."""
        raise NotImplementedError

    def is_full(self, nodes: list[dict]) -> bool:
        raise NotImplementedError

    def use(self, nodes: list[dict], say):
        """Works with nodes that `nodepool request` got."""

    def begin_anew(self):
        # What the last launcher's machines were is over, so its records are removed.
        shutil.rmtree(self.state, ignore_errors=True)
        (self.state / "images").mkdir(parents=True)
        self.log.unlink(missing_ok=True)
        self.values = {"NODEPOOL_STATE_DIR": self.state, "NODEPOOL_ZOOKEEPER_PORT": free_port(),
                       "NODEPOOL_WEB_PORT": free_port(), "NODEPOOL_EXAMPLES": ROOT / "examples"}

    def example_text(self) -> str:
        text = (ROOT / "examples" / self.example).read_text()
        return re.sub(r"%\((NODEPOOL_\w+)\)", lambda match: str(self.values[match.group(1)]), text)

    def start_launcher(self, say):
        port = self.values["NODEPOOL_WEB_PORT"]
        self.launcher = Process([BIN / "nodepool", "standalone", "-c", self.config, *self.options], self.log)
        self.started.append(self.launcher)
        self.wait(lambda: is_listening(port), "the web server answers", 60)
        say(f"the page: http://{LOOPBACK}:{port}/")

    def stop(self):
        for service in reversed(self.started):
            service.stop()

    def typed(self) -> list[str]:
        """The hints as a person types them."""
        is_default = self.folder == ROOT / ".state"
        tool = "./run nodepool" if is_default else f"build/release/bin/nodepool -c {self.config}"
        identity = "" if is_default else f" -i {self.key}"
        return [hint.format(tool=tool, identity=identity) for hint in self.hints]

    def tool(self, *words) -> list[str]:
        return [str(BIN / "nodepool"), "-c", str(self.config), *words]

    def listed(self, *words) -> list[dict]:
        try:
            done = subprocess.run(self.tool(*words, "--json", "--wait-for-server"), capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            return []  # the server is not listening yet, or has ended
        if done.returncode != 0:
            raise RuntimeError(f"nodepool {words[0]} failed:\n{done.stderr}")
        return json.loads(done.stdout)

    def wait(self, condition, what: str, seconds: float):
        """The first true value of `condition()`. RuntimeError: the launcher has ended."""
        def poll():
            if not self.launcher.is_running():
                raise RuntimeError(f"The launcher {self.launcher.how_it_ended()}; its last lines ({self.log}):\n"
                                   + "\n".join(self.launcher.output().splitlines()[-20:]))
            return condition()

        return wait_for(poll, what, seconds, pause=0.3)

    def wait_for_nodes(self, is_enough, what: str):
        self.wait(lambda: is_enough(self.listed("list")), what, self.seconds)

    def wait_until_full(self):
        self.wait_for_nodes(self.is_full, self.fullness)

    def show_nodes(self):
        subprocess.run(self.tool("list"), timeout=60, check=True)


def ready_labels(nodes: list[dict]) -> list[str]:
    return [label for node in nodes if node["state"] == "ready" for label in node["label"]]
