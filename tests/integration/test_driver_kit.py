"""The driver author's kit: drivers are built against an installed Nodepool and nothing else of it."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from nodepool_helpers import BIN, ROOT, run
from services import Process, files_of_processes, free_port, wait_for

TOOLS = ["bwrap", "ssh-keygen", "ssh", "setsid", "cmake"]

pytestmark = pytest.mark.skipif(any(shutil.which(tool) is None for tool in TOOLS), reason="bubblewrap is missing")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An installation of everything."""
    prefix = tmp_path_factory.mktemp("kit") / "usr"
    run("cmake", "--install", BIN.parent, "--prefix", prefix)
    return prefix


def build(source: pathlib.Path, prefix: pathlib.Path):
    """Builds a driver in source/build, as its author does."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1", *launcher)
    run("cmake", "--build", source / "build", "-j", "2")


@pytest.fixture(scope="module")
def prefix(installed, tmp_path_factory):
    """The installation with the example's driver in it."""
    # Away from the tree, so that nothing of it is found by chance.
    source = tmp_path_factory.mktemp("example") / "source"
    shutil.copytree(ROOT / "examples/driver", source)
    build(source, installed)
    run("cmake", "--install", source / "build")
    return installed


@pytest.fixture(scope="module")
def made(installed, tmp_path_factory):
    """What nodepool-driver-new makes, built."""
    folder = tmp_path_factory.mktemp("new")
    run(installed / "bin/nodepool-driver-new", "candle", cwd=folder)
    build(folder / "nodepool-candle", installed)
    return folder / "nodepool-candle"


@pytest.fixture
def key(tmp_path):
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    return tmp_path / "key"


def bubble_provider(tmp_path, key):
    octet = os.getpid() % 200 + 20
    return {"name": "local", "driver": "bubble", "state-dir": str(tmp_path / "bubbles"),
            "network": f"127.{octet}", "authorized-key": key.with_suffix(".pub").read_text().strip(),
            "pools": [{"name": "main", "labels": [{"name": "small"}]}]}


def processes_of(folder: pathlib.Path):
    found = []
    for path in files_of_processes("cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and b"bwrap" in path.read_bytes():
                found.append(path)
        except OSError:
            pass
    return found


# D-86
def test_a_request_is_served_by_a_driver_from_outside_the_tree(site, prefix, key, tmp_path):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    site.observer()
    launcher = Process([prefix / "bin/nodepool-launcher", "-d", "--cleanup-interval", "1", "-c", config],
                       tmp_path / "launcher.log")
    site.started.append(launcher)
    tree = site.tree()
    request_id = tree.add_request(["small"])
    request = tree.wait_request(request_id, "fulfilled", 60)
    node = tree.node(request["nodes"][0])
    assert node["host_keys"] and node["username"] == "zuul" and node["connection_port"] == 2222
    words = ["ssh", "-i", key, "-p", node["connection_port"], "-o", "StrictHostKeyChecking=no", "-o",
             "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", f"zuul@{node['interface_ip']}", "uname -n"]
    assert run(*words).strip() == f"np{request['nodes'][0]}"
    tree.change_node(request["nodes"][0], state="used")
    tree.zk.delete(f"/nodepool/requests/{request_id}")
    tree.wait_node_gone(request["nodes"][0])
    wait_for(lambda: not processes_of(tmp_path / "bubbles"), "the container is gone")


def test_the_programs_know_nothing_of_the_driver(prefix):
    for program in ("nodepool-launcher", "nodepool-builder", "nodepool"):
        assert not re.search("bubble", run("nm", "-C", prefix / "bin" / program), re.IGNORECASE)
    assert "bubble::Adapter::Create" in run("nm", "-C", prefix / "lib/nodepool/drivers/bubble.so")


def test_nothing_of_the_tree_is_named_in_what_is_installed(prefix):
    for path in [*prefix.glob("include/**/*.h"), *prefix.glob("lib/cmake/**/*")]:
        if path.is_file():
            assert str(ROOT) not in path.read_text(), path


# The contract of adapters, run by the installed program.
def test_the_example_keeps_the_contract(site, prefix, key, tmp_path):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    output = run(prefix / "bin/nodepool-driver-test", "-c", config, "--provider", "local", "--cancellations", "6")
    assert ", 0 failed" in output, output
    assert "passed   creations that are told to stop at any await" in output
    assert not processes_of(tmp_path / "bubbles")


def can_connect(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def lines_of(output: str, word: str) -> list[str]:
    return [line[9:] for line in output.splitlines() if line[:9].strip() == word]


def driver_test(installed, made, tmp_path, **options) -> subprocess.Popen:
    """The contract for the driver that was made, with its own configuration, in a folder of the test's."""
    config = tmp_path / "nodepool.yaml"
    config.write_text((made / "nodepool.yaml").read_text().replace("/tmp/candle-machines", str(tmp_path / "machines")))
    return subprocess.Popen([installed / "bin/nodepool-driver-test", "--drivers-dir", made / "build", "-c", config,
                             "--provider", "try"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def test_each_check_is_printed_when_it_begins_and_ends(installed, made, tmp_path):
    output = driver_test(installed, made, tmp_path).communicate(timeout=120)[0]
    begun = lines_of(output, "begins")
    assert len(begun) == 13
    ended = [line for line in output.splitlines() if re.match(r"(passed |skipped) ", line)]
    assert [re.sub(r"(: .*)? \(\d+\.\d s\)$", "", line[9:]) for line in ended] == begun
    assert "13 checks, 0 failed" in output


def test_a_new_driver_passes_the_contract_unchanged(installed, made, tmp_path):
    checks = driver_test(installed, made, tmp_path)
    output = checks.communicate(timeout=120)[0]
    assert checks.returncode == 0, output
    assert lines_of(output, "skipped") and not lines_of(output, "FAILED")
    assert not list((tmp_path / "machines").iterdir())
    assert "lantern" not in "".join(path.read_text() for path in [made / "README.md", *made.glob("src/*")])
    run(installed / "bin/nodepool", "--drivers-dir", made / "build", "-c", tmp_path / "nodepool.yaml", "config-validate")


@pytest.mark.parametrize("words, complaint", [
    (["Candle"], "use lower-case letters"),
    (["static"], "has a driver static already"),
    (["aws"], "has a driver aws already"),
    (["--http", "openshiftpods"], "has a driver openshiftpods already"),
    (["libvirt"], "has a driver libvirt already"),
    (["test"], "CMake has a target test"),
    (["candle", "/etc"], "/etc exists already"),
    ([], "Usage: nodepool-driver-new [--http] NAME"),
])
def test_what_cannot_be_made_is_refused(installed, tmp_path, words, complaint):
    done = subprocess.run([installed / "bin/nodepool-driver-new", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and complaint in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def of_http(installed, tmp_path_factory):
    """What the guide's commands for a cloud with an HTTP API make, built."""
    page = (ROOT / "docs/driver-guide/README.md").read_text()
    commands = re.search(r"^## A cloud with an HTTP API\n.*?\n\n((?:    [^\n]*\n)+)", page, re.M | re.S)[1]
    make, enter, compile_it, serve, check = [line.strip() for line in commands.splitlines()]
    assert compile_it == "cmake -B build && cmake --build build" and serve == "./cloud.py &"
    folder = tmp_path_factory.mktemp("http")
    run(*make.split(), cwd=folder, env={**os.environ, "PATH": f"{installed / 'bin'}:{os.environ['PATH']}"})
    made = folder / enter.split()[1]
    build(made, installed)
    return made, check.split()


@pytest.fixture
def cloud(of_http, tmp_path):
    """The simulated cloud, at a port of its own, and the configuration for it."""
    made, _ = of_http
    port = free_port()
    process = Process([made / "cloud.py", port], tmp_path / "cloud.log")
    wait_for(lambda: can_connect(port), "the cloud listens")
    config = made / "nodepool.yaml"
    text = config.read_text()
    config.write_text(text.replace(":8099", f":{port}"))
    yield process
    config.write_text(text)
    process.kill()


def check_http(installed, of_http, **more):
    made, words = of_http
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run([installed / "bin" / words[0], *words[1:]], cwd=made, env={**env, **more}, capture_output=True,
                          text=True, timeout=300)


def test_a_new_driver_for_http_passes_the_contract_unchanged(installed, of_http, cloud):
    done = check_http(installed, of_http)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed   a cloud that does not answer" in done.stdout
    assert not lines_of(done.stdout, "skipped") and not lines_of(done.stdout, "left")


def test_a_failure_is_printed_before_its_cleaning(installed, of_http):
    # Nothing listens at the port.
    made, words = of_http
    start = time.monotonic()
    checks = subprocess.Popen([installed / "bin" / words[0], *words[1:]], cwd=made, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    failed = next(line for line in checks.stdout if line.startswith("FAILED"))
    seconds = float(re.search(r"\(([\d.]+) s\)$", failed)[1])
    assert "POST http://127.0.0.1:8099/machines" in failed
    assert seconds < 15
    checks.communicate(timeout=100)
    assert checks.returncode == 1 and time.monotonic() - start < seconds + 60


def test_a_failed_first_creation_ends_the_checks_and_quotes_the_console(site, prefix, key, tmp_path):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("ssh-keygen", "setsid", "sh"):
        (tools / tool).symlink_to(shutil.which(tool))
    done = subprocess.run([prefix / "bin/nodepool-driver-test", "-c", config, "--provider", "local"], text=True,
                          capture_output=True, env={**os.environ, "PATH": str(tools)}, timeout=60)
    assert done.returncode == 1
    assert re.search(r"^FAILED   .*: Create of np\d+: the container did not start: .*bwrap: not found", done.stdout, re.M)
    assert len(lines_of(done.stdout, "not run")) == 11
    assert "13 checks, 1 failed, 11 not run" in done.stdout
    assert not list((tmp_path / "bubbles").glob("bubble-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_stopped_test_removes_its_machines(site, prefix, key, tmp_path, number):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    # The start of the container does not return before the test says so.
    gate, tools = tmp_path / "gate", tmp_path / "bin"
    os.mkfifo(gate)
    tools.mkdir()
    (tools / "setsid").write_text(f'#!/bin/sh\n{shutil.which("setsid")} "$@"\nread -r line < {gate}\n')
    (tools / "setsid").chmod(0o755)
    checks = subprocess.Popen([prefix / "bin/nodepool-driver-test", "-c", config, "--provider", "local"],
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    wait_for(lambda: processes_of(tmp_path / "bubbles"), "a container is there")
    checks.send_signal(number)
    stopped = "stopped: removing the machines of the current check"
    assert any(stopped in line for line in checks.stdout)
    gate.write_text("go on\n")
    output = checks.communicate(timeout=100)[0]
    assert checks.returncode == 130, output
    assert not lines_of(output, "left") and not list((tmp_path / "bubbles").glob("bubble-*"))
    assert not processes_of(tmp_path / "bubbles")


@pytest.mark.parametrize("words, complaint", [
    (["--provider", "tri"], "has no provider tri whose driver is known; it has try. A driver from elsewhere needs --drivers-dir"),
    (["--provider", "try", "--label", "smal"], "provider try offers no label smal; pool main has small"),
])
def test_what_is_not_configured_is_named_with_what_is(installed, made, words, complaint):
    done = subprocess.run([installed / "bin/nodepool-driver-test", "--drivers-dir", made / "build", "-c", made / "nodepool.yaml",
                           *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and complaint in done.stderr


def links_of(page: pathlib.Path) -> list[str]:
    """Files that a page links to."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return [link for link in re.findall(r"\]\(([^()\s#]+)", re.sub(r"`[^`\n]*`", "", text)) if "://" not in link]


def test_links_lead_somewhere_where_it_is_installed(installed):
    pages = installed / "share/doc/nodepool"
    assert (pages / "README.md").is_file() and (pages / "examples/quickstart.yaml").is_file()
    for page in [*pages.glob("*.md"), *pages.glob("docs/**/*.md"), *pages.glob("examples/**/*.md")]:
        for link in links_of(page):
            assert (page.parent / link).exists(), f"{page.relative_to(pages)}: {link}"
    kit = installed / "share/doc/nodepool-dev"
    assert (kit / "driver-guide/tutorial.md").is_file() and (kit / "examples/driver/CMakeLists.txt").is_file()


def test_an_adapters_headers_reach_no_records(installed, tmp_path):
    source = tmp_path / "adapter.cc"
    names = ["driver/cloud/adapter.h", "driver/cloud/cloud_driver.h", "driver/cloud/cloud_driver.h",
             "driver/provider_section.h", "driver/cloud/api/api_client.h", "driver/plugin.h", "driver/testing/contract.h"]
    source.write_text("".join(f"#include <nodepool/{name}>\n" for name in names))
    included = run("g++", "-std=c++23", "-MM", "-I", installed / "include", source)
    assert "nodepool/driver/cloud/adapter.h" in included
    assert not re.findall(r"nodepool/(?:store|zk)/\S+", included)
