"""The Debian packages, built and installed into a tree of a fresh Debian (./test --package).

The tree is made by debootstrap (debian_tree.py).
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time

import pytest
import yaml

from debian_tree import RELEASE
from nodepool_helpers import BIN, ROOT, fake_provider, run
from pages import Page
from services import Process, free_port, wait_for

pytestmark = pytest.mark.skipif(not os.environ.get("NODEPOOL_TEST_PACKAGE"), reason="only with ./test --package")


@pytest.fixture(scope="module")
def packages():
    """The files by the packages' names, made as docs/operator/install.md says."""
    folder = ROOT / "build/package"
    for old in folder.glob("*.deb"):
        old.unlink()
    commands = Page.read("docs/operator/install.md").section("The package").commands()
    assert "install-packages" in commands[0] and "apt install" in commands[-1]
    for command in commands[1:-1]:
        run("sh", "-c", command, cwd=ROOT)
    files = {run("dpkg-deb", "-f", path, "Package").strip(): path for path in folder.glob("*.deb")}
    assert set(files) == {"nodepool", "nodepool-dev", "nodepool-libvirt"}
    return files


def contents(package: pathlib.Path) -> dict[str, str]:
    """Mode and owner of each path."""
    found = {}
    for line in run("dpkg-deb", "-c", package).splitlines():
        mode, owner, _, _, _, path = line.split(maxsplit=5)
        found[path.removeprefix(".").rstrip("/")] = f"{mode} {owner}"
    return found


def test_what_is_in_them(packages):
    programs, development = contents(packages["nodepool"]), contents(packages["nodepool-dev"])
    for name in ("nodepool", "nodepool-launcher", "nodepool-builder", "nodepool-runners", "nodepoold"):
        assert programs[f"/usr/bin/{name}"] == "-rwxr-xr-x root/root"
    for path in ("/usr/lib/systemd/system/nodepool-launcher.service", "/usr/lib/systemd/system/nodepool-builder.service",
                 "/usr/lib/systemd/system/nodepool-standalone.service", "/usr/lib/sysusers.d/nodepool.conf",
                 "/usr/lib/tmpfiles.d/nodepool.conf", "/usr/share/man/man1/nodepool.1.gz",
                 "/usr/share/man/man8/nodepool-launcher.8.gz", "/usr/share/man/man8/nodepoold.8.gz", "/usr/share/bash-completion/completions/nodepool",
                 "/usr/share/zsh/vendor-completions/_nodepool", "/usr/share/fish/vendor_completions.d/nodepool.fish",
                 "/usr/share/doc/nodepool/examples/config/one-machine.yaml", "/usr/share/doc/nodepool/copyright",
                 "/usr/share/doc/nodepool/examples/quickstart.yaml", "/usr/share/doc/nodepool/README.md",
                 "/usr/share/doc/nodepool/docs/cli.md", "/usr/share/doc/nodepool/docs/reference/configuration.md",
                 "/usr/share/doc/nodepool/docs/driver-guide/reference.md", "/usr/share/doc/nodepool/docs/driver-guide/README.md",
                 "/etc/default/nodepool"):
        assert programs[path] == "-rw-r--r-- root/root", path
    assert "/usr/bin/nodepool-driver-test" in development and "/usr/include/nodepool/driver/plugin.h" in development
    assert "/usr/bin/nodepool-driver-new" in development
    assert "/usr/share/nodepool/driver-template/CMakeLists.txt" in development
    for link in ("driver-guide -> ../nodepool/docs/driver-guide", "examples -> ../nodepool/examples"):
        assert f"/usr/share/doc/nodepool-dev/{link}" in development
    assert not any(path.startswith("/usr/include") for path in programs)
    known = re.compile(r"/usr|/usr/(bin|include|lib|share)(/.*)?|/etc|/etc/default(/nodepool)?|")
    assert not [path for path in programs | development if not known.fullmatch(path)]
    both = {path for path in set(programs) & set(development) if not programs[path].startswith("d")}
    assert not both, "no file is in both"
    for path, mode in (programs | development).items():
        assert mode.startswith("l") or mode[8] == "-", f"{path} can be written by everybody"


# LV-2
def test_the_driver_libvirt_has_a_package_of_its_own(packages):
    files = contents(packages["nodepool-libvirt"])
    assert files["/usr/lib/nodepool/drivers/libvirt.so"] == "-rw-r--r-- root/root"
    assert not any("libvirt.so" in path for path in contents(packages["nodepool"]))
    depends = run("dpkg-deb", "-f", packages["nodepool-libvirt"], "Depends")
    for library in ("nodepool (= ", "libvirt0", "libpugixml1v5", "libarchive13"):
        assert library in depends


def test_what_they_say_of_themselves(packages):
    control = run("dpkg-deb", "-f", packages["nodepool"])
    depends = re.search(r"^Depends: (.*)$", control, re.M)[1]
    for library in ("libc6", "libstdc++6", "libboost-json", "libcurl", "libssl", "libsqlite3-", "libyaml-cpp", "libzmq",
                    "libre2-", "libargon2-", "libjemalloc2", "libsodium", "adduser"):
        assert re.search(rf"(?:^|, ){re.escape(library)}", depends), f"{library} in {depends}"
    assert "-dev" not in depends
    for library in ("libboost", "libboost-json", "libfmt"):
        assert re.search(rf"(?:^|, ){library}[\d.]*-dev\b", run("dpkg-deb", "-f", packages["nodepool-dev"], "Depends")), library
    scripts = run("dpkg-deb", "-I", packages["nodepool"])
    for name in ("conffiles", "postinst", "prerm", "postrm"):
        assert name in scripts
    assert run("dpkg-deb", "-I", packages["nodepool"], "conffiles") == "/etc/default/nodepool\n"
    for name in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n"], input=run("dpkg-deb", "-I", packages["nodepool"], name), text=True, check=True)


def one_machine() -> dict:
    return {"embedded-zookeeper": {"state-dir": "/var/lib/nodepool", "port": free_port()},
            "webapp": {"listen_address": "127.0.0.1", "port": free_port()},
            "labels": [{"name": "small"}], "providers": [fake_provider()]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory, packages, debian):
    fresh = debian.copy(tmp_path_factory.mktemp("tree"))
    shutil.copy(packages["nodepool"], fresh.path("/tmp"))
    fresh.install(f"/tmp/{packages['nodepool'].name}")
    yield fresh
    fresh.remove()


def test_installed_it_serves_a_request(tree):
    user = tree.run("getent", "passwd", "nodepool").split(":")
    assert user[5] == "/var/lib/nodepool" and user[6].strip().endswith("nologin")
    assert tree.run("stat", "-c", "%U %G %a", "/var/lib/nodepool").split() == ["nodepool", "nodepool", "750"]
    assert not list((tree.folder / "etc/systemd/system").glob("**/nodepool*")), "no unit is enabled"
    (tree.folder / "etc/nodepool/nodepool.yaml").write_text(yaml.safe_dump(one_machine()))
    tree.run("nodepool", "config-validate")
    as_user = ["setpriv", "--reuid=nodepool", "--regid=nodepool", "--init-groups"]
    daemon = Process(tree.words(*as_user, "nodepool", "standalone"), tree.folder / "standalone.log")
    try:
        begin = time.monotonic()
        shown = tree.run(*as_user, "nodepool", "request", "small", "--wait-for-server", "--wait", "--hold-for", "1s")
        assert "fulfilled" in shown and time.monotonic() - begin < 60
        wait_for(lambda: "fake-cloud" not in tree.run(*as_user, "nodepool", "list"), "the node is gone again", 60)
    finally:
        daemon.stop()
    for program in ("nodepool-launcher", "nodepool-builder"):
        assert "Nodepool version: " in tree.run(program, "--version")


def test_it_goes_and_leaves_what_is_not_its_own(tree, packages):
    (tree.folder / "etc/default/nodepool").write_text("STATSD_HOST=localhost\n")
    (tree.folder / "var/lib/nodepool/mine").write_text("x")
    tree.run("dpkg", "-i", f"/tmp/{packages['nodepool'].name}")  # an upgrade, so to speak
    assert (tree.folder / "etc/default/nodepool").read_text() == "STATSD_HOST=localhost\n"
    tree.run("apt-get", "-y", "-q", "remove", "nodepool")
    assert not (tree.folder / "usr/bin/nodepool").exists()
    assert (tree.folder / "etc/default/nodepool").exists() and (tree.folder / "etc/nodepool/nodepool.yaml").exists()
    tree.run("apt-get", "-y", "-q", "purge", "nodepool")
    assert not (tree.folder / "etc/default/nodepool").exists() and not (tree.folder / "var/log/nodepool").exists()
    assert (tree.folder / "etc/nodepool/nodepool.yaml").exists() and (tree.folder / "var/lib/nodepool/mine").exists()


def test_a_driver_is_built_against_them(packages, debian, tmp_path):
    """What the tutorial says, with a compiler, CMake and the packages."""
    author = debian.copy(tmp_path / "author")
    try:
        chosen = [packages[name] for name in ("nodepool", "nodepool-dev")]
        for path in chosen:
            shutil.copy(path, author.path("/tmp"))
        author.install("g++", "cmake", "make", *(f"/tmp/{path.name}" for path in chosen))
        commands = Page.read("docs/driver-guide/tutorial.md").section("Begin with one that works").commands()
        assert "nodepool-driver-new" in commands[0] and "nodepool-driver-test" in commands[-1]
        output = author.run("sh", "-ec", "\n".join(["cd /root", *commands]))
        assert ", 0 failed" in output, output
        assert "Warning" not in output, "of CMake or the compiler"
    finally:
        author.remove()


def test_a_container_image_of_it_serves_a_request(packages, debian, tmp_path):
    """The image that the Containerfile says, on a base that is no registry's but the tree's."""
    if shutil.which("buildah") is None:
        pytest.skip("images are made by buildah")
    environment = dict(os.environ, STORAGE_DRIVER="vfs", BUILDAH_ISOLATION="chroot")

    def buildah(*words) -> str:
        stores = ["--root", tmp_path / "store", "--runroot", tmp_path / "run"]
        return run("buildah", *stores, *words, env=environment).strip()

    # Containers get ours: buildah would raise them, which needs CAP_SYS_RESOURCE. Its own processes may have fewer.
    files, processes = (resource.getrlimit(what)[1] for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    limits = [f"--ulimit=nofile={files}:{files}", "--ulimit=nproc={0}:{0}".format(min(processes, 32768))]
    recipe = ROOT / "packaging/container/Containerfile"
    base = buildah("from", "scratch")
    buildah("add", "-q", base, debian.folder, "/")
    name = re.search(r"^FROM (\S+)$", recipe.read_text(), re.M)[1]
    buildah("commit", "-q", "--rm", base, name.replace("${RELEASE}", RELEASE))
    package = packages["nodepool"]
    buildah("build", "-q", "--pull=never", *limits, "-f", recipe, "--build-arg", f"RELEASE={RELEASE}", "--build-arg",
            f"PACKAGE={package.name}", "-t", "nodepool", package.parent)
    container = buildah("from", "--pull-never", *limits, "nodepool")

    image = json.loads(buildah("inspect", "--type", "image", "nodepool"))["OCIv1"]["config"]
    for program in re.findall(r"exec (\S+) ", " ".join(image["Cmd"])):
        assert "Nodepool version: " in buildah("run", container, "--", program, "--version")
    assert buildah("run", container, "--", "id", "-un") == "nodepool"
    settings = tmp_path / "nodepool.yaml"
    settings.write_text(yaml.safe_dump(one_machine()))
    settings.chmod(0o644)
    script = ("nodepool standalone >/tmp/log 2>&1 & daemon=$!; nodepool request small --wait-for-server --wait --hold-for 1s; status=$?; "
              "kill $daemon; wait $daemon; exit $status")
    assert "fulfilled" in buildah("run", "-v", f"{settings}:/etc/nodepool/nodepool.yaml:ro", container, "--", "sh", "-c", script)
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
