"""A libvirtd of ./run's own, for root where none runs."""
import json
import pathlib
import re
import shutil
import socket
import subprocess

from quickstart.firewall import remove_unused_chains
from quickstart.libvirt_host import LibvirtHost
from services import Process, wait_for

# libvirtd has its folders built in; in a mount namespace of its own these are below the state folder.
MOUNTS = {"/etc/libvirt": "etc", "/var/lib/libvirt": "lib", "/run/libvirt": "run", "/var/cache/libvirt": "cache",
          "/var/log/libvirt": "log", "/etc/passwd": "users/passwd", "/etc/group": "users/group"}
MOUNT_AND_START = """
state=$1; shift
while [ "$1" != -- ]; do mount --bind "$state/$2" "$1"; shift 2; done
shift; cd /; exec "$@"
"""
# Neither confinement nor control groups, which a container may lack.
SETTINGS = {
    "libvirtd.conf": 'unix_sock_rw_perms = "0700"\nunix_sock_ro_perms = "0700"\nauth_unix_rw = "none"\n'
                     'auth_unix_ro = "none"\nlog_outputs = "3:file:/var/log/libvirt/libvirtd.log"\n',
    "qemu.conf": 'user = "root"\ngroup = "root"\nsecurity_driver = "none"\ncgroup_controllers = []\n'
                 'namespaces = []\nremember_owner = 0\nstdio_handler = "logd"\n',
    "virtlogd.conf": 'max_size = 262144\nmax_backups = 2\nlog_outputs = "3:file:/var/log/libvirt/virtlogd.log"\n',
}
# Without these entries libvirtd's driver for QEMU does not start.
USERS = {"passwd": "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n", "group": "libvirt-qemu:x:64055:\n"}
FORWARDING = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
LONGEST_SOCKET = 107


class PrivateLibvirt(LibvirtHost):
    """Ends with this process; its machines do not, so `remove` starts it again if it has to."""

    kind = "private"

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder, f"qemu+unix:///system?socket={folder}/run/libvirt-sock")
        self.daemons = []

    @property
    def pool(self) -> pathlib.Path:
        return self.folder / "pool"

    def start(self):
        self._check_path()
        self._write_files()
        self._launch("virtlogd", self.folder / "run/virtlogd-sock")
        self._launch("libvirtd", self.folder / "run/libvirt-sock")
        self._write_note({**self._read_note(), "has_run": True})

    def remove(self):
        note = self._read_note()
        if note["has_run"]:
            if not self.daemons:
                self.start()
            self.clear()
        for daemon in reversed(self.daemons):
            daemon.stop(20)
        remove_unused_chains()
        if note["forwarding"] == "0" and not _bridges():
            FORWARDING.write_text("0")
        for folder in note["made"]:
            subprocess.run(["find", folder, "-depth", "-type", "d", "-empty", "-delete"], capture_output=True)
        shutil.rmtree(self.folder)

    def _check_path(self):
        socket_path = f"{self.folder}/run/libvirt-sock"
        if len(socket_path) > LONGEST_SOCKET or re.search(r"[^\w/.+-]", socket_path, re.ASCII):
            raise RuntimeError(f"libvirt cannot use {socket_path} as its socket: it has more than {LONGEST_SOCKET} bytes "
                               "or unusual characters; name another state folder with --state-dir")

    def _write_files(self):
        for name in ("etc", "lib", "run", "cache", "log", "users"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not self.note.exists():
            missing = [path for path in MOUNTS if not pathlib.Path(path).exists()]
            self._write_note({"kind": self.kind, "has_run": False, "forwarding": FORWARDING.read_text().strip(),
                              "made": missing})
        for path in self._read_note()["made"]:
            pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        for name, text in SETTINGS.items():
            (self.folder / "etc" / name).write_text(text)
        for name, entry in USERS.items():
            text = pathlib.Path("/etc", name).read_text()
            is_there = text.startswith("libvirt-qemu:") or "\nlibvirt-qemu:" in text
            (self.folder / "users" / name).write_text(text if is_there else text + entry)

    def _read_note(self) -> dict:
        return json.loads(self.note.read_text())

    def _write_note(self, note: dict):
        new = self.note.with_suffix(".new")
        new.write_text(json.dumps(note))
        new.replace(self.note)

    def _launch(self, name: str, path: pathlib.Path):
        mounts = [word for pair in MOUNTS.items() for word in pair]
        daemon = Process(["unshare", "--mount", "--propagation", "private", "sh", "-euc", MOUNT_AND_START, name, self.folder,
                          *mounts, "--", f"/usr/sbin/{name}", "-f", f"/etc/libvirt/{name}.conf",
                          "-p", f"/run/libvirt/{name}.pid"], self.folder / "log" / f"{name}.out",
                         env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(self.folder)})
        self.daemons.append(daemon)
        wait_for(lambda: _answers(path) or not daemon.is_running(), f"{name} answers", 60)
        if not daemon.is_running():
            raise RuntimeError(f"{name} {daemon.how_it_ended()}:\n{daemon.output()[-2000:]}")


def _answers(path: pathlib.Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _bridges() -> list[str]:
    links = subprocess.run(["ip", "-o", "link", "show", "type", "bridge"], capture_output=True, text=True).stdout
    return re.findall(r"^\d+: ([^:@]+)", links, re.MULTILINE)
