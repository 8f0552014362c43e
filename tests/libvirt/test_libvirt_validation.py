"""Uploads are tried on a real libvirt before they are used: one boots, one does not, of one the check fails."""
import json
import pathlib
import subprocess

import pytest

from libvirt_host import BOOT_SECONDS
from libvirt_images import PROVIDER, LibvirtImages

NO_BOOT_SECONDS = 30
CHECK = """#!/bin/sh
echo "$NODEPOOL_IMAGE on $NODEPOOL_HOST port $NODEPOOL_PORT" >> {log}
cat {verdict}
exit $(head -c 1 {verdict})
"""


class ValidatedImages(LibvirtImages):
    """Images whose file and whose check's verdict the test chooses."""

    def __init__(self, site, folder: pathlib.Path):
        self.source, self.verdict, self.log = (folder / name for name in ("source", "verdict", "checks"))
        check = folder / "check"
        check.write_text(CHECK.format(log=self.log, verdict=self.verdict))
        check.chmod(0o755)
        self.pass_checks()
        self.take(pathlib.Path(site.host.settings["guest"] + ".qcow2"))
        super().__init__(site, self.source, validate={"command": str(check), "timeout": 3 * BOOT_SECONDS})

    def take(self, image: pathlib.Path):
        self.source.unlink(missing_ok=True)
        self.source.symlink_to(image)

    def pass_checks(self):
        self.verdict.write_text("0\n")

    def fail_checks(self, why: str):
        self.verdict.write_text(f"1 {why}\n")

    def change_timeouts(self, old: int, new: int):
        """Of a launch and of a boot."""
        text = self.path.read_text()
        assert text.count(f"-timeout: {old}\n") == 2, text
        self.path.write_text(text.replace(f"-timeout: {old}\n", f"-timeout: {new}\n"))

    def failed_upload(self) -> str:
        """The error of an upload of a new build."""
        known = set(self.builds())
        self.tool("image-build", "debian")
        build = self.wait_build(known=known, seconds=120)
        key = self.wait_upload(provider=PROVIDER, build=build, state="failed", seconds=4 * BOOT_SECONDS)
        return self.uploads(provider=PROVIDER)[key]["error"]

    def upload_error(self) -> str:
        status, = json.loads(self.tool("image-status", "--json"))
        return status["upload_error"]


@pytest.fixture
def images(libvirt_site, tmp_path):
    site = ValidatedImages(libvirt_site, tmp_path)
    site.builder()
    libvirt_site.launcher(site.path)
    site.wait_upload(provider=PROVIDER, seconds=3 * BOOT_SECONDS)
    return site


# VAL-1, VAL-2, VAL-3, VAL-4
def test_only_an_image_that_boots_and_passes_its_check_is_used(images, tmp_path):
    (first, volume), = images.volumes_by_build().items()
    assert images.log.read_text().startswith("debian on 192."), "the check has reached the machine"

    images.fail_checks("the disk is too small")
    error = images.failed_upload()
    assert error.endswith("ended with 1: 1 the disk is too small"), error
    assert "the disk is too small" in images.upload_error()
    assert images.volumes_by_build() == {first: volume}, "the old one stays"

    # The check keeps failing, so that the next try of that build does not become ready.
    empty = tmp_path / "empty.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", empty, "1G"], check=True)
    images.take(empty)
    images.change_timeouts(BOOT_SECONDS, NO_BOOT_SECONDS)
    error = images.failed_upload()
    assert "no machine of it could be booted" in error, error
    assert "no machine of it could be booted" in images.upload_error()
    assert images.volumes_by_build()[first] == volume, "the old one stays beside what is tried again"

    images.change_timeouts(NO_BOOT_SECONDS, BOOT_SECONDS)
    tree = images.installation.tree()
    held = tree.use(tree.add_request(["small"]))
    root, = (name for name in images.host.volumes() if f".node.{held[0][0]}." in name and name.endswith(".root"))
    assert pathlib.Path(images.host.volume(root).findtext("backingStore/path")).name == volume
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
