"""Which libvirt of this computer may be used."""
import json
import pathlib

from quickstart.computer import OF_OWN_LIBVIRT, OF_SESSION, PROGRAMS, Computer, this_computer
from quickstart.libvirt_host import SESSION_URI, SYSTEM_URI, LibvirtHost, SessionLibvirt
from quickstart.private_libvirt import PrivateLibvirt


class NoRealMachines(RuntimeError):
    """Why this computer boots no real machines, and what to do about it."""


def choose(computer: Computer, may_start: bool) -> type[LibvirtHost]:
    """The kind of host. `may_start`: root may start a libvirtd where none runs. NoRealMachines: there is none."""
    if computer.architecture != "x86_64":
        raise NoRealMachines(f"this computer is {computer.architecture}, and the image of ./run --real is made for amd64 only; "
                             "docs/drivers/libvirt.md says how to use an image of your own")
    kind, programs = _kind_of(computer)
    if missing := [name for name in PROGRAMS + programs if name in computer.missing]:
        raise NoRealMachines(f"these programs are missing: {', '.join(missing)}; packages-real.txt lists their "
                             "packages, which ./run --real installs as root or with sudo")
    if computer.sudo_fault:
        raise NoRealMachines(f"diskimage-builder cannot use sudo as {computer.user}: {computer.sudo_fault}")
    if kind is SessionLibvirt and computer.session_fault:
        raise NoRealMachines(f"{computer.user} can use neither {SYSTEM_URI} ({computer.system_fault}) nor {SESSION_URI} "
                             f"({computer.session_fault}); as root, run: adduser {computer.user} libvirt")
    if kind is PrivateLibvirt and not may_start:
        raise NoRealMachines("no libvirtd runs; ./run --real starts one")
    if kind is PrivateLibvirt and computer.own_fault:
        raise NoRealMachines(f"no libvirtd runs, and none can be started: {computer.own_fault}, as in some containers")
    return kind


def _kind_of(computer: Computer) -> tuple[type[LibvirtHost], tuple[str, ...]]:
    """With the programs that it needs."""
    if computer.system_fault is None:
        return LibvirtHost, ()
    return (PrivateLibvirt, OF_OWN_LIBVIRT) if computer.is_root else (SessionLibvirt, OF_SESSION)


def find_host(folder: pathlib.Path, may_start: bool) -> LibvirtHost:
    return choose(this_computer(), may_start)(folder)


def known_host(folder: pathlib.Path) -> LibvirtHost | None:
    """The host that a ./run in this folder has noted and not removed."""
    note = folder / "host.json"
    if not note.exists():
        return None
    kind = json.loads(note.read_text())["kind"]
    return next(known for known in (LibvirtHost, SessionLibvirt, PrivateLibvirt) if known.kind == kind)(folder)
