"""A site whose daemon nodepool-runners serves a counterpart of GitHub, with hosts of this computer as nodes."""
import json
import pathlib
import random
import re
import shutil
import subprocess
import urllib.request
import uuid

import yaml

from exec_nodes import USER, host
from nodepool_helpers import BIN, Installation
from services import Process, Sshd, wait_for

RUNS = "/nodepool/runners/runs"
SETS = "/nodepool/runners/sets"


class Github:
    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state, self.commands = state, commands
        self.env = {}

    def up(self):
        for _ in range(5):  # another one may take the ports first
            port = random.randrange(18000, 30000, 10)
            done = subprocess.run([self.commands / "github-up", self.state, "--port", str(port)], capture_output=True, text=True,
                                  timeout=120)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stderr
        text = pathlib.Path(done.stdout.strip().splitlines()[-1]).read_text()
        self.env = dict(re.findall(r"(\w+)=(\S+)", text))

    def down(self):
        subprocess.run([self.commands / "github-down", self.state], check=True, capture_output=True, timeout=60)

    def post(self, path, **body):
        request = urllib.request.Request(self.env["GITHUB_CONTROL"] + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def get(self, path):
        with urllib.request.urlopen(self.env["GITHUB_CONTROL"] + path, timeout=60) as answer:
            return json.loads(answer.read())

    def queue(self, count=1, **job):
        job = {"repo": "octo/app", "labels": ["np-small"], "steps": ["echo hello"]} | job
        return self.post("/jobs", count=count, **job)["jobs"]

    def jobs(self):
        return self.get("/jobs")["github"]

    def states(self):
        return [job["state"] if job["state"] != "completed" else job["result"] for job in self.jobs()]

    def calls(self, since=0):
        """Time, method, path and status of each."""
        return self.get(f"/calls?from={since}")

    def world(self):
        return self.get("/state")


class RunnersSite(Installation):
    """Slots of this computer behind an SSH server, a launcher, and the daemon for the organization `octo`."""

    user = USER

    def __init__(self, folder, hosts, github):
        super().__init__(folder, hosts, f"/{uuid.uuid4().hex}")
        self.github = github
        self.sshd = Sshd(folder / "sshd", home=folder / "home").start()
        self.home = folder / "home"
        program = self.home / "actions-runner"
        program.mkdir(parents=True)
        shutil.copy(pathlib.Path(github.env["COUNTERPART_RUNNER"]) / "run.sh", program)
        self.slots = 4
        self.environment = {}

    def write_config(self, sets=None, slots=4, name="runners", is_app=False, secrets=None, **service):
        self.slots = slots
        small = {"name": "np-small", "node-label": "small", "max-runners": slots, "user": self.user}
        entry = {"name": "octo", "url": self.github.env["GITHUB_URL"] + "/octo", "ca": self.github.env["GITHUB_CA"],
                 "ssh-key": str(self.login_key()), "sets": [small | each for each in (sets or [{}])]} | service
        self.secure = self.folder / "secure.yaml"
        self.secure.write_text(yaml.safe_dump({"runner-services": [{"name": "octo"} | self.secret(is_app) | (secrets or {})]}))
        return self.config(name, runners=[entry], providers=[self.nodes_provider()])

    def nodes_provider(self):
        node = host(self.sshd, "small", **{"max-parallel-jobs": self.slots})
        return {"name": "metal", "driver": "static", "pools": [{"name": "main", "nodes": [node]}]}

    def login_key(self):
        return self.sshd.login_key()

    def secret(self, is_app):
        """What proves to the service who we are."""
        if not is_app:
            return {"token": self.github.env["GITHUB_TOKEN"]}
        return {"app-client-id": self.github.env["GITHUB_CLIENT_ID"], "app-installation-id": int(self.github.env["GITHUB_INSTALLATION_ID"]),
                "app-private-key": self.github.env["GITHUB_APP_KEY"]}

    def set_environment(self, **variables):
        """Of the runners on the hosts."""
        lines = "".join(f"export {key}={value}\n" for key, value in variables.items())
        run = self.home / "actions-runner" / "run.sh"
        original = self.home / "actions-runner" / "run-original.sh"
        if not original.exists():
            run.rename(original)
        run.write_text(f"#!/bin/sh\n{lines}exec {original} \"$@\"\n")
        run.chmod(0o755)

    def begin(self, wait=True, **config):
        self.path = self.write_config(**config)
        self.launcher(self.path)
        self.daemon = self.runners(wait=wait)
        return self.daemon

    def runners(self, name="runners", wait=True):
        process = Process([BIN / "nodepool-runners", "-f", "-d", "-c", self.path, "-s", self.secure],
                          self.folder / f"{name}-{len(self.started)}.log")
        self.started.append(process)
        if wait:
            wait_for(lambda: self.is_listening(), "the daemon listens", 30)
        return process

    def sets(self):
        tree = self.observer()
        return {f"{service}/{name}": tree.record(f"{SETS}/{service}/{name}")
                for service in tree.children(SETS) for name in tree.children(f"{SETS}/{service}")}

    def runs(self):
        tree = self.observer()
        found = {name: tree.record(f"{RUNS}/{name}") for name in tree.children(RUNS)}
        return {name: record for name, record in found.items() if record}

    def is_listening(self, name="octo/np-small"):
        return (self.sets().get(name) or {}).get("state") == "listening"

    def node_states(self):
        return sorted(node["state"] for node in self.observer().nodes().values())

    def is_clean(self):
        """No run, lease, request or registration is left, and all nodes are ready."""
        tree = self.observer()
        return (not self.runs() and not tree.children("/nodepool/leases") and not tree.children("/nodepool/requests")
                and self.node_states() == ["ready"] * self.slots and not self.github.world()["runners"])

    def await_results(self, count, seconds=60, result="succeeded"):
        wait_for(lambda: self.github.states() == [result] * count, f"{count} jobs are over", seconds)

    def await_clean(self, seconds=60):
        wait_for(self.is_clean, "nothing is left", seconds)

    def worker_processes(self):
        return subprocess.run(["pgrep", "-f", str(self.home / "actions-runner")], capture_output=True, text=True).stdout.split()

    def stop(self):
        super().stop()
        self.sshd.stop()
