"""A libvirt on this computer, with a pool and a network of ./run's own, which the driver makes."""
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from services import wait_for

SYSTEM_URI = "qemu:///system"
SESSION_URI = "qemu:///session"
FILTER = "clean-traffic"
SYSTEM_POOLS = pathlib.Path("/var/lib/libvirt/images")


def own_name(folder: pathlib.Path) -> str:
    """Of pool, network and provider: another checkout's ./run must not take its machines for leaked ones."""
    return "this-computer-" + hashlib.sha256(str(folder).encode()).hexdigest()[:6]


@dataclasses.dataclass
class LibvirtHost:
    """The system's libvirt. What is made there is noted in the folder before, so that it is removed after a kill, too."""

    folder: pathlib.Path
    uri: str = SYSTEM_URI
    kind = "system"
    can_start_warm = "true"

    @property
    def name(self) -> str:
        return own_name(self.folder)

    @property
    def pool(self) -> pathlib.Path:
        return SYSTEM_POOLS / self.name

    @property
    def security_filter(self) -> str:
        """Of the machines: libvirt's usual one, where its package of filters is installed."""
        return FILTER if FILTER in self.virsh("nwfilter-list") else "false"

    def network(self, subnet) -> str:
        """As the driver's setting `network` has it, in YAML."""
        return f"{{name: {self.name}, subnet: {subnet}}}"

    @property
    def note(self) -> pathlib.Path:
        return self.folder / "host.json"

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.note.write_text(json.dumps({"kind": self.kind}))

    def remove(self):
        """Removes machines, volumes, pool and network, whether or not they are there."""
        self.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self):
        # Without its network no machine starts any more.
        if self.name in self.virsh("net-list", "--all", "--name").split():
            self.try_virsh("net-destroy", self.name)
            self.virsh("net-undefine", self.name)
        wait_for(lambda: not self.destroy_machines(), "the machines end", 60)
        if self.name in self.virsh("pool-list", "--all", "--name").split():
            self.clear_pool()

    def destroy_machines(self) -> bool:
        """Those whose disks are in the pool; whether there was one. One that ends meanwhile cannot be described."""
        machines = [domain for domain in self.virsh("list", "--uuid").split()
                    if f"{self.pool}/" in run_virsh(self.uri, "dumpxml", domain).stdout]
        for machine in machines:
            self.try_virsh("destroy", machine)
        return bool(machines)

    def clear_pool(self):
        self.try_virsh("pool-start", self.name)
        if self.try_virsh("pool-refresh", self.name):
            for line in filter(str.strip, self.virsh("vol-list", self.name).splitlines()):
                self.try_virsh("vol-delete", line.split()[0], self.name)
            self.try_virsh("pool-destroy", self.name)
            self.virsh("pool-delete", self.name)
        self.virsh("pool-undefine", self.name)

    def virsh(self, *words) -> str:
        done = run_virsh(self.uri, *words)
        if done.returncode != 0:
            raise RuntimeError(f"virsh {' '.join(words)} failed at {self.uri}: {done.stderr.strip()}")
        return done.stdout

    def try_virsh(self, *words) -> bool:
        return run_virsh(self.uri, *words).returncode == 0


class SessionLibvirt(LibvirtHost):
    """That of a user without rights, which libvirt starts when it is used. Machines are reached at ports of this computer."""

    kind = "session"
    security_filter = "false"
    can_start_warm = "false"  # the port of a machine is part of its memory

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder, SESSION_URI)

    @property
    def pool(self) -> pathlib.Path:
        return self.folder / "pool"

    def network(self, subnet) -> str:
        return "{user: true}"


def run_virsh(uri: str, *words) -> subprocess.CompletedProcess:
    return subprocess.run(["virsh", "-q", "-c", uri, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, env={**os.environ, "LC_ALL": "C"})
