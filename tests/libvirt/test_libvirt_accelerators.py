"""Accelerators on a real libvirt, of a computer with and without a KVM that works."""
import shutil

import pytest
from services import wait_for

NO_DEVICE = "there is no /dev/kvm"


def offers_kvm(host) -> bool:
    try:
        host.virsh("domcapabilities", "--virttype", "kvm")
    except AssertionError:
        return False
    return True


def provider_of(site, accelerator: str, **settings) -> dict:
    return site.provider(**{"accelerator": accelerator, "launch-retries": 1, **settings})


# LV-41
def test_tcg_runs_machines_without_kvm_although_it_is_offered(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    if not offers_kvm(host):
        pytest.skip(NO_DEVICE)
    libvirt_site.launcher(libvirt_site.config(providers=[provider_of(libvirt_site, "tcg")]))
    tree.add_request(["small"])
    name, = wait_for(host.domains, "the machine is started", 60)
    assert host.domain(name).get("type") == "qemu"


# LV-41
def test_kvm_runs_machines_or_the_console_gives_the_hint(libvirt_site):
    """With a KVM that is offered and runs no ordinary kernel the machine stays silent, or QEMU refuses it."""
    host, tree = libvirt_site.host, libvirt_site.tree()
    if not offers_kvm(host):
        pytest.skip(NO_DEVICE)
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[
        provider_of(libvirt_site, "auto", **{"launch-timeout": 60, "boot-timeout": 30})]))
    request = tree.add_request(["small"])
    works = host.settings["accel"] == "kvm"
    tree.wait_request(request, "fulfilled" if works else "failed", 200)
    shown = launcher.output()
    assert "machines run with KVM" in shown
    if works:
        name, = host.domains()
        assert host.domain(name).get("type") == "kvm"
    else:
        assert "set accelerator to tcg" in shown


HIDE_KVM = '[ ! -e /dev/kvm ] || mount --bind /dev/null /dev/kvm; exec "$@"'


@pytest.fixture
def without_kvm(libvirt_host):
    """The host's libvirtd, where /dev/kvm is no KVM."""
    remembered = libvirt_host.state / "cache/qemu"
    shutil.rmtree(remembered)
    libvirt_host.restart("sh", "-euc", HIDE_KVM, "sh")
    yield
    shutil.rmtree(remembered)
    libvirt_host.restart()


# LV-41
def test_a_host_without_the_kvm_that_is_configured_is_unusable(libvirt_site, without_kvm):
    assert not offers_kvm(libvirt_site.host)
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider_of(libvirt_site, "kvm")]), wait=False)
    wait_for(lambda: "it offers no KVM; set accelerator to tcg, or enable KVM there" in launcher.output(),
             "the host is unusable", 60)
