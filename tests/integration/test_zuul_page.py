"""docs/zuul.md, played: its certificates, its configurations, and a client that connects as Zuul's section says."""
import subprocess

import yaml

from nodepool_helpers import BIN
from pages import Page
from services import Process, Sshd, free_port, wait_for
from zuul_job import run_job

PAGE = Page.read("docs/zuul.md")


def test_a_client_with_the_section_of_the_page_gets_the_node_of_the_page(tmp_path):
    folder = tmp_path / "zk"
    (certificates,) = PAGE.blocks("sh")
    subprocess.run(["sh", "-euc", certificates.replace("/etc/nodepool/zk", str(folder))], check=True,
                   capture_output=True, timeout=60)

    configuration, job = PAGE.blocks("yaml")
    configuration = yaml.safe_load(configuration.replace("/etc/nodepool/zk", str(folder)))
    tls_port = free_port()
    server = configuration["embedded-zookeeper"]
    assert server["state-dir"] == "/var/lib/nodepool"
    server.update({"state-dir": str(tmp_path / "state"), "port": free_port()})
    server["tls"].update({"port": tls_port, "listen-address": "127.0.0.1"})
    configuration["webapp"] = {"listen_address": "127.0.0.1", "port": free_port()}
    sshd = Sshd(tmp_path / "sshd").start()
    (host,) = configuration["providers"][0]["pools"][0]["nodes"]
    host.update({"name": "127.0.0.1", "connection-port": sshd.port})
    path = tmp_path / "nodepool.yaml"
    path.write_text(yaml.safe_dump(configuration))
    standalone = Process([BIN / "nodepool", "standalone", "-c", path], tmp_path / "standalone.log")
    try:
        checked = subprocess.run([BIN / "nodepool", "-c", path, "config-validate"], capture_output=True, text=True,
                                 timeout=60)
        assert checked.returncode == 0, checked.stderr

        (section,) = PAGE.blocks("ini")
        assert "hosts=nodepool.example.org:2281" in section.splitlines()
        wait_for(lambda: "ready" in subprocess.run([BIN / "nodepool", "-c", path, "list"], capture_output=True,
                                                   text=True, timeout=60).stdout, "the host is registered")
        assert run_job(section.replace("/etc/zuul/zk", str(folder)), job, f"127.0.0.1:{tls_port}") == ["127.0.0.1"]
    finally:
        standalone.stop()
        sshd.stop()
