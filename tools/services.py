"""Private servers for the quick start and the integration tests.

Every server listens on loopback on a free port, stores its files in a folder given
by the caller, runs as the calling user and ends when the caller does.
"""
import ctypes
import errno
import itertools
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

LOOPBACK = "127.0.0.1"
ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("NODEPOOL_BIN", ROOT / "build/release/bin"))

_ports = itertools.count(os.getpid() * 613)


def free_port() -> int:
    """A TCP port on which nothing listens. Another process could take it before the caller does. That is unlikely: it
    is below those that the kernel assigns to connections, and each process begins somewhere else, by its id."""
    while True:
        port = 10_000 + next(_ports) % 20_000
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


def files_of_processes(name: str) -> list[pathlib.Path]:
    """/proc/PID/NAME of every process; any may be gone when it is read."""
    return [process / name for process in pathlib.Path("/proc").glob("[0-9]*")]


def wait_for(condition, what: str, seconds: float = 30.0, pause: float = 0.05):
    """The first true value of `condition()`; AssertionError naming `what` after the time-out."""
    deadline = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(pause)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def die_with_parent():
    # The kernel ends the child when its parent has ended for any reason.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Process:
    """A child with its output in a file. `stop`, `kill` and `pause` may be called at any time."""

    def __init__(self, words, log: pathlib.Path, env=None):
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self.child = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                                          preexec_fn=die_with_parent, start_new_session=True)

    @property
    def pid(self) -> int:
        return self.child.pid

    def is_running(self) -> bool:
        return self.child.poll() is None

    def how_it_ended(self) -> str:
        status = self.child.poll()
        if status is None:
            return "is running"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: int):
        if self.is_running():
            self.child.send_signal(number)

    def pause(self):
        self.send(signal.SIGSTOP)

    def resume(self):
        self.send(signal.SIGCONT)

    def wait(self, seconds: float = 30.0) -> int:
        return self.child.wait(seconds)

    def kill(self):
        self.send(signal.SIGKILL)
        self.child.wait(10)

    def stop(self, seconds: float = 10.0, number: int = signal.SIGTERM):
        """Terminates the child, and kills it if it does not end in time."""
        self.resume()
        self.send(number)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()


def make_certificates(folder: pathlib.Path, name: str = "nodepool") -> pathlib.Path:
    """A CA (ca.pem), and a certificate with key (cert.pem, key.pem, both.pem) signed by it, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30",
            "-subj", f"/CN={name} test CA")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "request.pem", "-subj",
            f"/CN={name}.example.org")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            "cert.pem", "-days", "30")
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder


class ZooKeeper:
    """One Apache ZooKeeper server of Debian's package.

    With `certificates` (a folder of make_certificates) it also listens with TLS.
    `peers` are the (quorum port, election port) of every server of an ensemble, and
    `number` is this server's place in it, from 1.
    """

    def __init__(self, folder: pathlib.Path, certificates: pathlib.Path | None = None, port: int | None = None,
                 number: int = 1, peers: list[tuple[int, int]] | None = None, heap: str = "256m"):
        self.folder = folder
        self.heap = heap
        self.port = port or free_port()
        self.tls_port = free_port() if certificates else None
        self.process = None
        data = folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        lines = [f"dataDir={data}", "tickTime=500", "initLimit=20", "syncLimit=10", f"clientPort={self.port}",
                 f"clientPortAddress={LOOPBACK}", "admin.enableServer=false", "4lw.commands.whitelist=*",
                 "maxClientCnxns=0", "maxSessionTimeout=60000", "minSessionTimeout=1000"]
        if certificates:
            lines += [f"secureClientPort={self.tls_port}", f"secureClientPortAddress={LOOPBACK}",
                      "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                      f"ssl.keyStore.location={certificates}/both.pem",
                      f"ssl.trustStore.location={certificates}/ca.pem"]
        for index, (quorum, election) in enumerate(peers or [], start=1):
            lines.append(f"server.{index}={LOOPBACK}:{quorum}:{election}")
        if peers:
            (data / "myid").write_text(str(number))
        (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        (folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN, CONSOLE\n"
            "log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n\n")

    @property
    def hosts(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self, wait: bool = True):
        java = shutil.which("java") or "/usr/bin/java"
        # A quick start matters here, durability across a power failure does not.
        jars = ":".join(f"/usr/share/java/{name}.jar" for name in ("zookeeper", "netty-codec", "slf4j-log4j12", "log4j-1.2"))
        words = [java, "-cp", f"{self.folder}:{jars}", f"-Xmx{self.heap}", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-Dzookeeper.extendedTypesEnabled=true",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.folder / "zoo.cfg"]
        self.process = Process(words, self.folder / "zookeeper.log")
        if wait:
            self.wait_ready()
        return self

    def command(self, word: str) -> str:
        """The answer to a four-letter command; empty if there is none."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=2) as connection:
                connection.sendall(word.encode())
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")
        except OSError:
            return ""

    def role(self) -> str:
        """leader, follower, standalone, or empty without a quorum."""
        for line in self.command("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def wait_ready(self, seconds: float = 60.0):
        def is_ready():
            if not self.process.is_running():
                raise RuntimeError(f"ZooKeeper ended at once; its log is {self.process.log}:\n{self.process.output()}")
            return self.role()

        wait_for(is_ready, f"ZooKeeper on port {self.port} answers", seconds)
        if self.tls_port:
            wait_for(lambda: is_listening(self.tls_port), f"ZooKeeper listens with TLS on {self.tls_port}", seconds)

    def stop(self):
        if self.process:
            self.process.stop()

    def restart(self):
        self.process.kill()
        return self.start()


class EmbeddedZooKeeper(ZooKeeper):
    """The embedded server of `nodepool standalone`, as a separate program; what it writes is synchronized to disk or not."""

    def __init__(self, folder: pathlib.Path, certificates: pathlib.Path | None = None, port: int | None = None,
                 options=(), is_synchronized: bool = True):
        self.folder = folder
        self.env = {} if is_synchronized else {"LD_PRELOAD": "libeatmydata.so"}
        self.port = port or free_port()
        self.tls_port = free_port() if certificates else None
        self.process = None
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = folder / "state.sqlite"
        self.words = [f"journal={self.journal}", *options]
        if certificates:
            self.words += [f"tls-port={self.tls_port}", f"cert={certificates}/cert.pem", f"key={certificates}/key.pem",
                           f"ca={certificates}/ca.pem"]

    def start(self, wait: bool = True):
        self.process = Process([BIN / "embedded_zookeeper", self.port, *self.words], self.folder / "zookeeper.log",
                               env=self.env)
        if wait:
            self.wait_ready()
        return self


def new_zookeeper(folder: pathlib.Path, certificates: pathlib.Path | None = None) -> ZooKeeper:
    """Apache's server, or the embedded one with NODEPOOL_TEST_ZOOKEEPER=embedded."""
    if os.environ.get("NODEPOOL_TEST_ZOOKEEPER") == "embedded":
        # As Apache's server here: durability across a power failure does not matter, and a slow disk would.
        return EmbeddedZooKeeper(folder, certificates, is_synchronized=False)
    return ZooKeeper(folder, certificates)


def start_ensemble(folder: pathlib.Path, size: int = 3, heap: str = "256m") -> list[ZooKeeper]:
    """`size` servers that have elected a leader."""
    peers = [(free_port(), free_port()) for _ in range(size)]
    servers = [ZooKeeper(folder / f"zk{number}", number=number, peers=peers, heap=heap) for number in range(1, size + 1)]
    for server in servers:
        server.start(wait=False)
    for server in servers:
        server.wait_ready()
    return servers


def ssh_version() -> tuple[int, int]:
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=True).stderr)
    return int(found[1]), int(found[2])


class Sshd:
    """An SSH server with its own host key and configuration, for the user of the test. With `home`, shells start with
    what is there, in place of the user's own files, which may take their time or set what they like."""

    def __init__(self, folder: pathlib.Path, port: int | None = None, home: pathlib.Path | None = None):
        self.folder = folder
        self.port = port or free_port()
        self.process = None
        folder.mkdir(parents=True, exist_ok=True)
        self.key = folder / "host_key"
        if not self.key.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        environment = f"SetEnv HOME={home}\n" if home else ""
        # From 9.8 on, who only reads host keys, as scans do, is kept away for a while.
        penalties = "PerSourcePenalties no\n" if ssh_version() >= (9, 8) else ""
        (folder / "sshd_config").write_text(
            f"{environment}ListenAddress {LOOPBACK}\nPort {self.port}\n{penalties}HostKey {self.key}\nPidFile none\nUsePAM no\n"
            f"PasswordAuthentication no\nAllowUsers {pwd.getpwuid(os.getuid()).pw_name}\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nSubsystem sftp internal-sftp\nMaxStartups 200\nMaxSessions 200\n")

    def login_key(self, key: pathlib.Path | None = None) -> pathlib.Path:
        """A private key that logs in; it is made where there is none."""
        key = key or self.folder / "login_key"
        if not key.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        public = subprocess.run(["ssh-keygen", "-y", "-f", key], check=True, capture_output=True, text=True).stdout
        with (self.folder / "authorized_keys").open("a+") as keys:
            keys.seek(0)
            if public not in keys.read():
                keys.write(public)
        return key

    @property
    def host_key(self) -> str:
        """The key as in a node record: "<type> <base64>"."""
        return " ".join(self.key.with_suffix(".pub").read_text().split()[:2])

    def start(self):
        if os.getuid() == 0:
            # The server requires its chroot folder when it runs as root.
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = Process(["/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "sshd_config"],
                               self.folder / "sshd.log")
        wait_for(lambda: is_listening(self.port), f"sshd listens on port {self.port}", 20)
        return self

    def stop(self):
        if self.process:
            self.process.stop()
