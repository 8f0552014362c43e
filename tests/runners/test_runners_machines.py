"""Jobs on machines of libvirt that are ready when they come. Needs both ./test --github DIR and --libvirt DIR, or by hand
NODEPOOL_TEST_GITHUB and NODEPOOL_TEST_LIBVIRT; NODEPOOL_TEST_GITHUB_MACHINES=10 says how many jobs there are."""
import os
import pathlib
import statistics
import subprocess
import sys

import pytest
from services import Process, wait_for

from github_site import RunnersSite

sys.path.append(str(pathlib.Path(__file__).parent.parent / "libvirt"))
from libvirt_host import DRIVERS, LibvirtHost, LibvirtSite  # noqa: E402

pytestmark = pytest.mark.skipif("NODEPOOL_TEST_LIBVIRT" not in os.environ, reason="NODEPOOL_TEST_LIBVIRT is not set, see ./test --help")
JOBS = int(os.environ.get("NODEPOOL_TEST_GITHUB_MACHINES", "3"))
VOLUME = "np-runner-guest.qcow2"


@pytest.fixture(scope="module")
def guest_host(tmp_path_factory):
    """A libvirt with a guest in which the stand-in for the runner can run."""
    commands = pathlib.Path(os.environ["NODEPOOL_TEST_LIBVIRT"])
    kept = os.environ.get("NODEPOOL_TEST_LIBVIRT_STATE")
    made = LibvirtHost(pathlib.Path(kept) if kept else tmp_path_factory.mktemp("virt"), commands)
    made.up()
    folder = pathlib.Path(os.environ.get("NODEPOOL_TEST_GITHUB_GUEST") or tmp_path_factory.mktemp("guest"))
    if not (folder / "runner.qcow2").exists():
        subprocess.run([commands / "lib/make-guest", folder, "runner", "--packages", "python3,procps"], check=True, timeout=1800)
    if VOLUME not in made.virsh("vol-list", "nodepool"):
        size = (folder / "runner.qcow2").stat().st_size
        made.virsh("vol-create-as", "nodepool", VOLUME, str(size), "--format", "qcow2")
        made.virsh("vol-upload", VOLUME, str(folder / "runner.qcow2"), "--pool", "nodepool", "--sparse")
    made.direct = {"kernel": str(folder / "runner.vmlinuz"), "initrd": str(folder / "runner.initrd"),
                   "kernel-args": "root=/dev/vda rw console=ttyS0 net.ifnames=0"}
    yield made
    if not kept:
        made.down("--remove")


class MachineSite(RunnersSite):
    """One machine at a time, which is booted before a job comes. Its runner reaches the service through a tunnel."""

    user = "zuul"
    provider = LibvirtSite.provider

    def __init__(self, folder, hosts, github, host):
        super().__init__(folder, hosts, github)
        self.host = host
        self.settings["labels"] = [{"name": "small", "min-ready": 1}]
        self.prepared = set()

    def nodes_provider(self):
        image = {"name": "tiny", "volume": VOLUME, "username": "zuul", **self.host.direct}
        pools = [{"name": "main", "security-filter": False, "max-servers": 1,
                  "labels": [{"name": "small", "cloud-image": "tiny", "memory": 512}]}]
        return self.provider(**{"cloud-images": [image], "pools": pools})

    def login_key(self):
        return self.host.key

    def launcher(self, *arguments, options=(), **named):
        return super().launcher(*arguments, options=["--drivers-dir", DRIVERS, *options], **named)

    def ssh(self, node_id, node):
        known_hosts = self.folder / f"known_hosts-{node_id}"
        known_hosts.write_text("".join(f"{node['interface_ip']} {key}\n" for key in node["host_keys"]))
        return ["ssh", "-F", "none", "-i", self.host.key, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
                "-o", f"UserKnownHostsFile={known_hosts}", f"zuul@{node['interface_ip']}"]

    def prepare_next(self) -> str:
        """Waits for a ready machine, and puts the runner into it, as an image would have it."""
        def ready():
            return next(((name, node) for name, node in self.observer().nodes().items()
                         if node["state"] == "ready" and name not in self.prepared), None)

        name, node = wait_for(ready, "a machine is ready", 400)
        run = (pathlib.Path(self.github.env["COUNTERPART_RUNNER"]) / "run.sh").read_bytes()
        subprocess.run([*self.ssh(name, node), "mkdir -p actions-runner && cat >actions-runner/run.sh && chmod 755 actions-runner/run.sh && "
                        "python3 -c 'import ssl, urllib.request, json, ctypes, tempfile'"], input=run, check=True, timeout=300)
        port = self.github.env["GITHUB_URL"].rsplit(":", 1)[1]
        words = self.ssh(name, node)
        tunnel = Process([*words[:-1], "-N", "-v", "-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:{port}:127.0.0.1:{port}", words[-1]],
                         self.folder / f"tunnel-{name}.log")
        self.started.append(tunnel)
        wait_for(lambda: "remote forward success" in tunnel.output(), "the tunnel is there", 120)
        self.prepared.add(name)
        return name


@pytest.fixture
def machines(tmp_path, shared_zookeeper, github, guest_host):
    guest_host.clear()
    site = MachineSite(tmp_path, shared_zookeeper.hosts, github, guest_host)
    yield site
    site.stop()
    guest_host.clear()


# RUN-1, RUN-2
def test_jobs_on_ready_machines(machines, github, record_property):
    machines.begin(slots=1, sets=[{"start-timeout": 300}])
    taken = []
    for number in range(JOBS):
        name = machines.prepare_next()
        github.queue(steps=["hostname"])
        machines.await_results(number + 1, 400)
        job = github.jobs()[-1]
        assert job["output"].strip() == f"np{name}", "it ran on the machine"
        times = {what.split()[0]: at for at, what in job["history"]}
        taken.append(times["started"] - times["assigned"])
    taken.sort()
    p50, p99 = statistics.median(taken), taken[min(len(taken) - 1, len(taken) * 99 // 100)]
    figures = f"assigned to first step on a ready machine, {len(taken)} jobs: p50 {p50:.1f} s, p99 {p99:.1f} s, least {taken[0]:.1f} s"
    record_property("figures", figures)
    print(figures)
    wait_for(lambda: not machines.runs() and not github.world()["runners"], "no run is left", 120)
