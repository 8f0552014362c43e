"""Real machines of this computer, from an image that the builder makes."""
import os
import pathlib
import subprocess

from quickstart.accelerator import choose, try_kvm
from quickstart.choose_host import known_host
from quickstart.installation import Installation, ready_labels
from quickstart.job import LABEL, login_words
from quickstart.libvirt_host import LibvirtHost
from quickstart.subnets import free_subnet
from services import BIN, ROOT

IMAGE = "light-debian"
BUILD_SECONDS = 1800
# With this line begin labels and providers, which need to know what the machines run on.
SECOND_PART = "\nlabels:\n"


def cache_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "nodepool"


class RealMachines(Installation):
    example = "one-computer.yaml"
    options = ("--drivers-dir", BIN.parent / "drivers")
    labels = (LABEL,)
    fullness = f"real machines of label {LABEL}"
    seconds = 1200  # without KVM, on a busy computer
    hints = ("{tool} request debian --wait", "{tool} exec{identity} debian -- uname -a", "{tool} list", "./run job 'uname -a'")

    def __init__(self, folder: pathlib.Path, host: LibvirtHost):
        super().__init__(folder)
        self.host = host

    def start(self, say):
        self.begin_anew()
        say(f"starting libvirtd in {self.host.folder}" if self.host.kind == "private" else f"using {self.host.uri}")
        self.host.start()
        self.start_builder(say)
        say(f"building the image {IMAGE} with diskimage-builder: two minutes, or seconds if it is in {cache_folder()}")
        kernel = self.wait(self.built_kernel, f"the image {IMAGE} is built", BUILD_SECONDS)
        accelerator = choose(try_kvm(kernel, self.state))
        say(f"machines run with {accelerator.name}: {accelerator.reason}. One boots in {accelerator.boot_time}")
        self.values |= {"NODEPOOL_ACCELERATOR": accelerator.name, "NODEPOOL_MIN_READY": accelerator.ready}
        self.ready = accelerator.ready
        # The launcher follows the file.
        self.config.write_text(self.example_text())

    def start_builder(self, say):
        """Starts everything but labels and providers."""
        (self.state / "tmp").mkdir()
        self.values |= {
            "NODEPOOL_CACHE": cache_folder() / "images", "NODEPOOL_TOOLS": ROOT / "tools", "NODEPOOL_PROVIDER": self.host.name,
            "NODEPOOL_LIBVIRT": self.host.uri, "NODEPOOL_POOL_DIR": self.host.pool,
            "NODEPOOL_FILTER": self.host.security_filter, "NODEPOOL_NETWORK": self.host.network(free_subnet(_routes(), self.host.name)),
            "NODEPOOL_KEY": self.key,
            "NODEPOOL_WARM_START": self.host.can_start_warm, "NODEPOOL_ACCELERATOR": "auto", "NODEPOOL_MIN_READY": 0}
        self.config.write_text(self.example_text().partition(SECOND_PART)[0] + "\n")
        self.start_launcher(say)

    def built_kernel(self) -> pathlib.Path | None:
        """The kernel that the element leaves beside the image. RuntimeError: the build has failed."""
        builds = self.listed("dib-image-list")
        if any(build["state"] == "failed" for build in builds):
            logs = sorted((self.state / "image-logs").glob("*.log"))
            raise RuntimeError(f"The image {IMAGE} could not be built; see {logs[-1] if logs else self.log}")
        if not any(build["state"] == "ready" for build in builds):
            return None
        return next((self.state / "images").glob(f"{IMAGE}-*.d/vmlinuz"))

    def is_full(self, nodes: list[dict]) -> bool:
        return ready_labels(nodes).count(LABEL) >= self.ready

    def use(self, nodes: list[dict], say):
        for node in nodes:
            say(f"logging in to {node['address']}, which has to have the host keys of its record")
            subprocess.run(login_words(node, self.folder, "uname -a"), check=True, timeout=300)
            say("uname -a has run")

    def stop(self):
        super().stop()
        if self.host.note.exists():
            self.host.remove()


def remove_left_behind(folder: pathlib.Path) -> bool:
    """Removes from the host what a ./run in this folder has made and, since it was killed, not removed; whether there was
    anything."""
    host = known_host(host_folder(folder))
    if host is None:
        return False
    host.remove()
    return True


def host_folder(folder: pathlib.Path) -> pathlib.Path:
    return folder / "libvirt"


def _routes() -> str:
    return subprocess.run(["ip", "-4", "route", "show", "table", "all"], capture_output=True, text=True, check=True).stdout
