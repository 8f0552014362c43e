"""./run --real as a user who has no rights on the system's libvirt."""
import os
import pathlib
import shutil
import tempfile

import pytest

from nodepool_helpers import run
from real_run import SECONDS, start
from shell import Shell

USER, USER_ID = "anna", 64801
# The user exists, with these rights, in a mount namespace alone.
FILES = {"passwd": f"{USER}:x:{USER_ID}:{USER_ID}::{{home}}:/bin/bash\n", "group": f"{USER}:x:{USER_ID}:\n",
         "shadow": f"{USER}:*:19000:0:99999:7:::\n"}
SUDOERS = f"{USER} ALL=(ALL) NOPASSWD:ALL\n"
BECOME_THE_USER = """
etc=$1; shift
for file in passwd group shadow sudoers.d; do mount --bind "$etc/$file" /etc/$file; done
exec runuser -u anna -- "$@"
"""


@pytest.fixture
def home():
    """A folder that the user can reach, unlike pytest's."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="anna-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def users_shell(home, checkout, host):
    etc = home / "etc"
    (etc / "sudoers.d").mkdir(parents=True)
    for name, entry in FILES.items():
        (etc / name).write_text(pathlib.Path("/etc", name).read_text() + entry.format(home=home))
    (etc / "sudoers.d/anna").write_text(SUDOERS)
    (etc / "sudoers.d/anna").chmod(0o440)
    (etc / "shadow").chmod(0o640)
    copy = home / "nodepool"
    shutil.copytree(checkout, copy, symlinks=True)
    images = pathlib.Path.home() / ".cache/nodepool"
    if images.exists():
        shutil.copytree(images, home / ".cache/nodepool")
    run("chown", "-R", f"{USER_ID}:{USER_ID}", copy, *([home / ".cache"] if images.exists() else []))
    home.joinpath(".cache").mkdir(exist_ok=True)
    for folder in (home, home / ".cache"):
        os.chown(folder, USER_ID, USER_ID)
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", BECOME_THE_USER, "sh", etc, "env", "-C", copy,
             f"HOME={home}", f"PATH={copy}/path:/usr/bin:/bin", f"NODEPOOL_BIN={copy}/build/release/bin"]
    with Shell(words, home) as typed:
        yield typed
        typed.run("./run stop", 200)
        # The session's daemon would end by itself, two minutes after its last client.
        typed.run("kill $(pgrep -u anna -x libvirtd)")


# LV-40, LV-11
def test_a_user_without_rights_gets_machines_at_ports_of_this_computer(users_shell, home):
    running = start(users_shell)
    assert "Using qemu:///session" in running.output()
    assert "127.0.0.1" in users_shell.succeed("./run nodepool list")
    assert users_shell.succeed("./run job 'id --user --name'", SECONDS).startswith("zuul\n")
    assert "Stopped." in users_shell.succeed("./run stop", 200)
    assert not (home / "nodepool/.state/libvirt").exists()
    for what in ("list", "pool-list --all"):
        assert users_shell.succeed(f"virsh -q -c qemu:///session {what} --name").strip() == ""
