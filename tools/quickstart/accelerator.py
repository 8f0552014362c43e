"""Which of QEMU's accelerators runs ordinary kernels on this computer."""
import dataclasses
import os
import pathlib

from services import Process, wait_for

TRIAL_SECONDS = 10  # a kernel that KVM runs says its first words in one


@dataclasses.dataclass(frozen=True)
class Accelerator:
    name: str  # as the driver calls it
    reason: str
    boot_time: str  # of a machine
    ready: int  # machines that are kept ready


def choose(fault_of_kvm: str | None) -> Accelerator:
    """`fault_of_kvm` says why KVM runs no ordinary kernel; None: it does."""
    if fault_of_kvm is None:
        return Accelerator("kvm", "a kernel starts with it", "a few seconds", ready=2)
    return Accelerator("tcg", fault_of_kvm, "half a minute, or minutes on a busy computer", ready=1)


def try_kvm(kernel: pathlib.Path, folder: pathlib.Path) -> str | None:
    """Starts the kernel for a moment: devices and capabilities also show a KVM that runs only special guests. Files
    of the trial go into `folder`. The fault, or None."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "there is no /dev/kvm that this user may use"
    console = folder / "kvm-trial-console"
    log = folder / "kvm-trial.log"
    for path in (console, log):
        path.unlink(missing_ok=True)
    machine = Process(["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-machine", "pc", "-m", "256", "-display",
                       "none", "-nodefaults", "-no-reboot", "-serial", f"file:{console}", "-kernel", kernel,
                       "-append", "console=ttyS0 panic=-1"], log)
    try:
        wait_for(lambda: _has_spoken(console) or not machine.is_running(), "the kernel's first words", TRIAL_SECONDS)
    except AssertionError:
        pass
    finally:
        machine.kill()
    if _has_spoken(console):
        return None
    said = machine.output().splitlines()[:1]
    return " ".join(["/dev/kvm is there, but an ordinary kernel does not start with it", *(f"({line})" for line in said)])


def _has_spoken(console: pathlib.Path) -> bool:
    return console.exists() and b"Linux version" in console.read_bytes()
