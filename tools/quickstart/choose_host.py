"""Which libvirt of this computer may be used."""
import dataclasses
import getpass
import os
import pathlib
import shutil
import subprocess

from quickstart.libvirt_host import SYSTEM_URI, LibvirtHost, run_virsh
from quickstart.private_libvirt import PrivateLibvirt

PROGRAMS = ("virsh", "qemu-system-x86_64", "qemu-img", "disk-image-create", "mmdebstrap", "sudo", "ssh", "ip")
OF_OWN_LIBVIRT = ("libvirtd", "virtlogd", "dnsmasq", "iptables", "unshare")


class NoRealMachines(RuntimeError):
    """Why this computer boots no real machines, and what to do about it."""


@dataclasses.dataclass(frozen=True)
class Computer:
    """What decides about the libvirt to use."""

    user: str
    is_root: bool
    missing: tuple[str, ...]  # of PROGRAMS and OF_OWN_LIBVIRT
    may_sudo: bool  # without a password
    system_fault: str | None  # why this user cannot use the system's libvirt; None: it can
    own_fault: str | None = None  # why root cannot start a libvirtd here; None: it can


def this_computer() -> Computer:
    # Those of administrators are not on everybody's path.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = tuple(name for name in PROGRAMS + OF_OWN_LIBVIRT if not shutil.which(name, path=path))
    may_sudo = subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0 if "sudo" not in missing else False
    return Computer(getpass.getuser(), os.getuid() == 0, missing, may_sudo, _system_fault(missing), _own_fault(missing))


def _own_fault(missing: tuple[str, ...]) -> str | None:
    if "unshare" in missing:
        return "there is no unshare"
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True).returncode != 0:
        return "mounts are not permitted"
    return None if pathlib.Path("/dev/net/tun").exists() else "there is no /dev/net/tun"


def _system_fault(missing: tuple[str, ...]) -> str | None:
    if "virsh" in missing:
        return "there is no virsh"
    done = run_virsh(SYSTEM_URI, "pool-list")
    return None if done.returncode == 0 else done.stderr.strip().removeprefix("error: ").splitlines()[-1]


def choose(computer: Computer, may_start: bool) -> type[LibvirtHost]:
    """The kind of host. `may_start`: root may start a libvirtd where none runs. NoRealMachines: there is none."""
    needed = PROGRAMS if computer.system_fault is None else PROGRAMS + OF_OWN_LIBVIRT
    if missing := [name for name in needed if name in computer.missing]:
        raise NoRealMachines(f"these programs are missing: {', '.join(missing)}; packages-real.txt lists their "
                             "packages, which ./run --real installs as root or with sudo")
    if not computer.may_sudo:
        raise NoRealMachines(f"{computer.user} may not use sudo without a password, which diskimage-builder needs; "
                             "use ./run --real as root")
    if computer.system_fault is None:
        return LibvirtHost
    if computer.is_root and may_start:
        if computer.own_fault:
            raise NoRealMachines(f"no libvirtd runs, and none can be started: {computer.own_fault}, as in some containers")
        return PrivateLibvirt
    remedy = "./run --real starts one" if computer.is_root else f"as root, run: adduser {computer.user} libvirt"
    raise NoRealMachines(f"{computer.user} cannot use {SYSTEM_URI} ({computer.system_fault}); {remedy}")


def find_host(folder: pathlib.Path, may_start: bool) -> LibvirtHost:
    return choose(this_computer(), may_start)(folder)


def known_host(folder: pathlib.Path) -> LibvirtHost | None:
    """The host that a ./run in this folder has noted and not removed."""
    note = folder / "host.json"
    if not note.exists():
        return None
    return PrivateLibvirt(folder) if '"private"' in note.read_text() else LibvirtHost(folder)
