"""What the tests do with a real libvirt, by its command line, and Nodepool with a provider on it."""
import os
import pathlib
import shlex
import signal as signal_numbers
import subprocess
import uuid
import xml.etree.ElementTree as ElementTree

from nodepool_helpers import BIN, Installation, run
from services import wait_for

DRIVERS = BIN.parent / "drivers"
NAMESPACE = "{urn:nodepool:machine:1}"
# Without KVM a machine takes its time.
BOOT_SECONDS = 400


class LibvirtHost:
    """A libvirt whose state is in a folder; `libvirt-up` resumes what was stopped."""

    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state = state
        self.commands = commands
        self.key = state / "ci-key"

    def up(self, *before, options=()):
        """Starts what does not run; `before` are words before the command."""
        self._run(*before, self.commands / "libvirt-up", self.state, *options, timeout=1800)
        self.settings = dict(word.split("=", 1) for line in (self.state / "settings.sh").read_text().splitlines()
                             for word in shlex.split(line) if "=" in word)

    def add_cloud_init_guest(self) -> str:
        """The volume of an ordinary Debian with systemd and cloud-init, which is made when it is not there."""
        self.up(options=["--cloud-init"])
        return "guest-cloudinit.qcow2"

    def down(self, *words):
        self._run(self.commands / "libvirt-down", self.state, *words)

    def direct_kernel(self) -> dict[str, str]:
        """Settings of a cloud image that start the guest's kernel without its boot loader."""
        guest = self.settings["guest"]
        return {"kernel": f"{guest}.vmlinuz", "initrd": f"{guest}.initrd",
                "kernel-args": "root=/dev/vda rw console=ttyS0 net.ifnames=0 nodepool.test=1"}

    def daemon_pid(self) -> int:
        return int((self.state / "pids/libvirtd.pid").read_text())

    def end_daemon(self, signal: str):
        """Ends libvirtd, below its machines; `up` starts it again."""
        pid = self.daemon_pid()
        os.kill(pid, getattr(signal_numbers, f"SIG{signal}"))
        wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "libvirtd ends", 90)

    def restart(self, *before):
        """Ends libvirtd and starts it again, where the words `before` lead."""
        self.end_daemon("TERM")
        self.up("unshare", "--mount", "--propagation", "private", *before)

    @staticmethod
    def _run(*words, timeout=900) -> str:
        done = subprocess.run(words, timeout=timeout, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    @property
    def uri(self) -> str:
        return f"qemu+unix:///system?socket={self.state}/run/libvirt-sock"

    @property
    def public_key(self) -> str:
        return self.key.with_suffix(".pub").read_text().strip()

    def virsh(self, *words) -> str:
        return self._run("virsh", "-c", self.uri, *words, timeout=60)

    def try_virsh(self, *words) -> bool:
        return subprocess.run(["virsh", "-q", "-c", self.uri, *words], timeout=60, capture_output=True).returncode == 0

    def domains(self) -> list[str]:
        return self.virsh("list", "--name").split()

    def domain(self, name: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.virsh("dumpxml", name))

    def metadata(self, name: str) -> dict[str, str]:
        return {item.get("name"): item.text or "" for item in self.domain(name).iter(f"{NAMESPACE}property")}

    def volumes(self) -> list[str]:
        """Those of machines and uploads, after a new reading of the pool."""
        self.virsh("pool-refresh", "nodepool")
        names = [line.split()[0] for line in self.virsh("vol-list", "nodepool").splitlines()[2:] if line.strip()]
        return sorted(name for name in names if name.startswith("np."))

    def volume(self, name: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.virsh("vol-dumpxml", name, "nodepool"))

    def clear(self):
        # A machine whose start was broken off ends by itself.
        for name in self.domains():
            self.try_virsh("destroy", name)
        assert self.domains() == []
        for name in self.volumes():
            self.virsh("vol-delete", name, "nodepool")


class LibvirtSite(Installation):
    """Nodepool with one provider on the host."""

    def __init__(self, folder: pathlib.Path, hosts: str, host: LibvirtHost):
        super().__init__(folder, hosts, chroot=f"/libvirt-{uuid.uuid4().hex}")
        self.host = host
        self.settings["providers"] = [self.provider()]

    def provider(self, label: dict | None = None, **settings) -> dict:
        return {
            "name": "here", "driver": "libvirt", "uri": self.host.uri, "network": "nodepool",
            "accelerator": self.host.settings["accel"], "authorized-keys": [self.host.public_key],
            "boot-timeout": BOOT_SECONDS, "launch-timeout": BOOT_SECONDS,
            "cloud-images": [{"name": "tiny", "volume": "guest.qcow2", "username": "zuul"}],
            "pools": [{"name": "main", "security-filter": False,
                       "labels": [{"name": "small", "cloud-image": "tiny", "memory": 512, **(label or {})}]}],
            **settings,
        }

    def launcher(self, *arguments, options=(), **named):
        return super().launcher(*arguments, options=["--drivers-dir", DRIVERS, *options], **named)

    def login(self, node: dict, *command, key: pathlib.Path | None = None) -> str:
        """Runs a command in the machine, whose host keys must be those of its record."""
        known_hosts = self.folder / "known_hosts"
        port = node["connection_port"]
        shown = node["interface_ip"] if port == 22 else f"[{node['interface_ip']}]:{port}"
        known_hosts.write_text("".join(f"{shown} {key}\n" for key in node["host_keys"]))
        options = ["BatchMode=yes", "StrictHostKeyChecking=yes", "LogLevel=ERROR", "ConnectTimeout=60",
                   f"UserKnownHostsFile={known_hosts}"]
        words = [word for option in options for word in ("-o", option)]
        return run("ssh", "-F", "none", "-p", port, "-i", key or self.host.key, *words,
                   f"{node['username']}@{node['interface_ip']}", *command).strip()

    def tree(self, **kazoo_options):
        tree = super().tree(**kazoo_options)
        tree.fulfil_timeout = 2 * BOOT_SECONDS
        return tree
