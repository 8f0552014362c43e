"""Fresh Debians in folders, made by debootstrap from the mirror of this machine."""
import os
import pathlib
import platform
import shutil
import subprocess

from nodepool_helpers import run
from services import Process, wait_for

MISSING = next((f"{tool} is missing" for tool in ("debootstrap", "bwrap") if shutil.which(tool) is None),
               None if os.geteuid() == 0 else "only root makes a Debian")
RELEASE = platform.freedesktop_os_release().get("VERSION_CODENAME", "")  # of this machine
OTHER_RELEASES = [release for release in ("bookworm", "trixie") if release != RELEASE]
CHECKOUT = pathlib.Path("/srv/nodepool")  # of a newcomer; not below /tmp, which systemd makes empty
ENVIRONMENT = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


class Debian:
    """A Debian in a folder, whose network is ours. Each command has process ids of its own, so that those it started end
    with it, whichever user they run as."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.mounts = ["--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"]  # options of bwrap
        self.environment = dict(ENVIRONMENT)

    @classmethod
    def bootstrap(cls, folder: pathlib.Path, release: str = RELEASE) -> "Debian":
        """As small as Debian is."""
        run("debootstrap", "--variant=minbase", release, folder)
        folder.chmod(0o755)  # the root directory of everybody in it
        (folder / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")  # a copy need not survive a power failure
        return cls(folder)

    def upgrade(self):
        """To the release's latest packages. debootstrap has named the mirror in sources.list, as "deb URL RELEASE main"."""
        sources = self.path("/etc/apt/sources.list")
        _, mirror, release, *_ = sources.read_text().split()
        sources.write_text("".join(f"deb {url} {suite} main\n" for url, suite in (
            (mirror, release), (mirror, f"{release}-updates"), (f"{mirror.rstrip('/')}-security", f"{release}-security"))))
        self.run("apt-get", "update", "-q")
        self.run("apt-get", "upgrade", "-q", "-y")

    def copy(self, folder: pathlib.Path) -> "Debian":
        run("cp", "-a", f"{self.folder}/.", folder)
        return Debian(folder)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, inside) -> pathlib.Path:
        """Where a file in it is for us."""
        return self.folder / str(inside).lstrip("/")

    def enter(self, *options) -> list[str]:
        """The words before a command that runs in it; the options are bwrap's."""
        variables = [word for name, value in self.environment.items() for word in ("--setenv", name, value)]
        return [str(word) for word in ["bwrap", "--die-with-parent", "--unshare-pid", "--bind", self.folder, "/", "--dev", "/dev",
                                       "--proc", "/proc", *self.mounts, "--cap-add", "ALL", "--clearenv", *variables, *options]]

    def words(self, *words) -> list[str]:
        return [*self.enter("--chdir", "/"), *(str(word) for word in words)]

    def run(self, *words) -> str:
        return run(*self.words(*words))

    def install(self, *packages):
        """Packages by name, or by path in it."""
        self.run("apt-get", "-o", "APT::Sandbox::User=root", "install", "-y", "-q", "--no-install-recommends", *packages)


class Machine:
    """A Debian whose systemd runs. Its network is a loopback interface of its own, so that ports and names are as pages
    say. Used in a with statement, at whose end all its processes are killed."""

    def __init__(self, debian: Debian, name: str):
        self.debian = debian
        self.name = name
        mounted = run("findmnt", "-n", "-t", "cgroup2", "-o", "TARGET").split()[0]
        self.group = pathlib.Path(mounted) / f"{name}-{os.getpid()}"

    def __enter__(self):
        self.group.mkdir()
        namespaces = [f"--unshare-{kind}" for kind in ("net", "uts", "ipc", "cgroup")]
        # What changes the kernel itself is not the machine's.
        dropped = [word for name in ("RAWIO", "MODULE", "BOOT", "TIME") for word in ("--cap-drop", f"CAP_SYS_{name}")]
        boot = self.debian.enter(*namespaces, "--as-pid-1", "--ro-bind", "/sys", "/sys", "--bind", self.group, "/sys/fs/cgroup",
                                 "--tmpfs", "/run", "--tmpfs", "/tmp", *dropped, "--setenv", "container", "bwrap")
        self.process = Process(["sh", "-c", 'echo $$ >"$0" && exec "$@"', self.group / "cgroup.procs", *boot, "/sbin/init"],
                               self.debian.folder.with_name(f"{self.name}.log"))
        try:
            self.init = wait_for(self._first_process, "the machine's first process is there")
            wait_for(lambda: self._state() in ("running", "degraded"), f"systemd has started: {self.process.log}", 120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        wait_for(self._has_no_processes, "the machine's processes have ended")
        for folder in sorted(self.group.glob("**/"), reverse=True):
            folder.rmdir()

    def _first_process(self) -> int | None:
        assert self.process.is_running(), self.process.output()
        found = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(found[0]) if found else None

    def _has_no_processes(self) -> bool:
        return not any(path.read_text() for path in self.group.glob("**/cgroup.procs"))

    def _state(self) -> str:
        return subprocess.run(self.words("systemctl", "is-system-running"), capture_output=True, text=True,
                              timeout=60).stdout.strip()

    def words(self, *words) -> list[str]:
        variables = [f"{name}={value}" for name, value in self.debian.environment.items()]
        return ["nsenter", "-t", str(self.init), "-a", "--root", "--wdns=/", "env", "-i", *variables, *(str(word) for word in words)]

    def journal(self) -> str:
        """Its last messages."""
        return subprocess.run(self.words("journalctl", "--no-pager", "-n", "60"), capture_output=True, text=True,
                              timeout=60).stdout
