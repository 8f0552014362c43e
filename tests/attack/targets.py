"""What is attacked."""
import dataclasses
import pathlib

from nodepool_helpers import BIN, Installation
from services import EmbeddedZooKeeper, Process, free_port
from standalone import Standalone
from web_client import web_config
from web_tls import WebTls


@dataclasses.dataclass
class Target:
    """A running daemon. The ports are those that it serves itself."""

    program: pathlib.Path
    process: Process
    zookeeper_port: int | None = None
    web_port: int | None = None
    authority: pathlib.Path | None = None  # that of the web server's certificate, which is for localhost


def start_server(folder: pathlib.Path) -> Target:
    """An embedded ZooKeeper server: that of `nodepool standalone`, or alone where there is no such program."""
    if (BIN / "nodepool").exists():
        running = Standalone(folder).start()
        running.wait_ready()
        return Target(BIN / "nodepool", running.process, running.port, running.web_port)
    alone = EmbeddedZooKeeper(folder / "zookeeper").start()
    return Target(BIN / "embedded_zookeeper", alone.process, alone.port)


class LauncherSite(Installation):
    """A ZooKeeper server, which is not attacked, and launchers."""

    def __init__(self, folder: pathlib.Path):
        self.zookeeper = EmbeddedZooKeeper(folder / "zookeeper").start()
        super().__init__(folder, self.zookeeper.hosts)

    def start(self, tls: WebTls | None = None, **settings) -> Target:
        """A launcher whose pools are registered."""
        port = free_port()
        process = self.launcher(web_config(self, port, tls, **settings), seconds_between_sweeps=60)
        return Target(BIN / "nodepool-launcher", process, web_port=port, authority=tls and tls.authority)

    def stop(self):
        super().stop()
        self.zookeeper.stop()
