"""What a ./run --real could leave on the host."""
import os
import pathlib
import re
import subprocess


class LeftOnHost:
    """The host as it is when this object is made. Nothing else may start libvirt networks until it is checked."""

    def __init__(self, checkout: pathlib.Path):
        self.checkout = checkout
        self.before = self._read()

    def assert_unchanged(self):
        left = {kind: things - self.before[kind] for kind, things in self._read().items()}
        assert not any(left.values()), f"left on the host: { {kind: things for kind, things in left.items() if things} }"

    def _read(self) -> dict[str, set[str]]:
        return {"processes": processes_of(self.checkout), "mounts": _mounts_of(self.checkout), "bridges": _bridges(),
                "chains": _chains(), "loop devices": _loop_devices(self.checkout),
                "temporary files": {path.name for path in pathlib.Path("/tmp").glob("dib_*")},
                "folders": {path for path in ("/run/libvirt", "/etc/libvirt", "/var/lib/libvirt") if os.path.exists(path)}}


def processes_of(checkout: pathlib.Path) -> set[str]:
    """Those that name the checkout, or run in a mount namespace into which parts of it are mounted."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            is_ours = str(checkout).encode() in words or str(checkout) in (process / "mountinfo").read_text()
        except OSError:
            continue
        if is_ours and b"\0pytest\0" not in words:
            found.add(words.replace(b"\0", b" ").decode(errors="replace")[:200])
    return found


def _mounts_of(checkout: pathlib.Path) -> set[str]:
    return {line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if str(checkout) in line}


def _bridges() -> set[str]:
    return set(re.findall(r"virbr\d+", _output("ip", "-o", "link")))


def _chains() -> set[str]:
    """Rules for our subnets, and libvirt's chains."""
    rules = "".join(_output("iptables", "-t", table, "-S") for table in ("filter", "nat", "mangle"))
    return {line for line in rules.splitlines() if "LIBVIRT" in line and "-A LIBVIRT" not in line or "192.168.1" in line}


def _loop_devices(checkout: pathlib.Path) -> set[str]:
    return {line for line in _output("losetup", "-a").splitlines() if str(checkout) in line}


def _output(*words) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
