"""What of this computer decides about real machines."""
import dataclasses
import getpass
import os
import pathlib
import shutil
import subprocess

from quickstart.libvirt_host import SESSION_URI, SYSTEM_URI, run_virsh

PROGRAMS = ("virsh", "qemu-system-x86_64", "qemu-img", "disk-image-create", "mmdebstrap", "sudo", "ssh", "ip")
OF_SESSION = ("libvirtd",)
OF_OWN_LIBVIRT = ("libvirtd", "virtlogd", "dnsmasq", "iptables", "unshare")


@dataclasses.dataclass(frozen=True)
class Computer:
    """What decides about the libvirt to use."""

    user: str
    is_root: bool
    missing: tuple[str, ...]  # of PROGRAMS and OF_OWN_LIBVIRT
    sudo_fault: str | None  # why diskimage-builder cannot use sudo; None: it can
    system_fault: str | None  # why this user cannot use the system's libvirt; None: it can
    session_fault: str | None = None  # why this user has no libvirt of the session, if not root; None: there is one
    architecture: str = "x86_64"  # as the kernel names it
    own_fault: str | None = None  # why root cannot start a libvirtd here; None: it can


def this_computer() -> Computer:
    # Those of administrators are not on everybody's path.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = tuple(name for name in PROGRAMS + OF_OWN_LIBVIRT if not shutil.which(name, path=path))
    is_root = os.getuid() == 0
    return Computer(getpass.getuser(), is_root, missing, sudo_fault=_sudo_fault(missing), system_fault=_fault_of(SYSTEM_URI, missing),
                    session_fault=None if is_root else _fault_of(SESSION_URI, missing), architecture=os.uname().machine, own_fault=_own_fault(missing))


def _sudo_fault(missing: tuple[str, ...]) -> str | None:
    if "sudo" in missing:
        return "there is no sudo"
    done = subprocess.run(["sudo", "-n", "true"], capture_output=True, text=True)
    if done.returncode != 0:
        return "it wants a password; use ./run --real as root"
    # diskimage-builder takes a warning for a part of the answer.
    return f"it warns ({done.stderr.strip()}); is this computer's name in /etc/hosts?" if done.stderr else None


def _fault_of(uri: str, missing: tuple[str, ...]) -> str | None:
    if "virsh" in missing:
        return "there is no virsh"
    done = run_virsh(uri, "pool-list")
    return None if done.returncode == 0 else done.stderr.strip().removeprefix("error: ").splitlines()[-1]


def _own_fault(missing: tuple[str, ...]) -> str | None:
    if "unshare" in missing or not _succeeds("unshare", "--mount", "--propagation", "private", "true"):
        return "mounts are not permitted"
    return None if pathlib.Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


def _succeeds(*words) -> bool:
    return subprocess.run(words, capture_output=True).returncode == 0
