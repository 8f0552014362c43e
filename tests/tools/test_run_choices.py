"""What ./run decides before it starts anything."""
import dataclasses
import subprocess

import pytest

from quickstart import accelerator, firewall, subnets
from quickstart.choose_host import NoRealMachines, choose
from quickstart.computer import Computer
from quickstart.libvirt_host import LibvirtHost, SessionLibvirt, own_name
from quickstart.private_libvirt import PrivateLibvirt

ROOT_ALONE = Computer("root", True, (), sudo_fault=None, system_fault="no socket")
MEMBER = Computer("anna", False, (), sudo_fault=None, system_fault=None)


@pytest.mark.parametrize("computer, may_start, kind", [
    (MEMBER, False, LibvirtHost), (MEMBER, True, LibvirtHost),
    (dataclasses.replace(MEMBER, missing=("libvirtd", "dnsmasq")), True, LibvirtHost), (ROOT_ALONE, True, PrivateLibvirt),
    (dataclasses.replace(MEMBER, system_fault="access denied"), False, SessionLibvirt),
    (dataclasses.replace(ROOT_ALONE, system_fault=None), True, LibvirtHost)])
def test_the_systems_libvirt_is_used_and_otherwise_roots_own_or_the_users_session(computer, may_start, kind):
    assert choose(computer, may_start) is kind


@pytest.mark.parametrize("computer, may_start, reason", [
    (dataclasses.replace(MEMBER, missing=("virsh", "ip")), True, "virsh, ip; packages-real.txt"),
    (dataclasses.replace(ROOT_ALONE, missing=("dnsmasq",)), True, "missing: dnsmasq;"),
    (dataclasses.replace(MEMBER, sudo_fault="it wants a password"), True, "sudo as anna: it wants a password"),
    (dataclasses.replace(MEMBER, system_fault="access denied", session_fault="no daemon"), True,
     r"\(access denied\).*\(no daemon\); as root, run: adduser anna libvirt"),
    (dataclasses.replace(ROOT_ALONE, own_fault="there is no /dev/net/tun"), True, "there is no /dev/net/tun, as in some containers"),
    (ROOT_ALONE, False, "./run --real starts one"),
    (dataclasses.replace(MEMBER, architecture="aarch64"), True, "is aarch64, .* for amd64 only; docs/drivers/libvirt.md")])
def test_a_computer_without_real_machines_says_why_and_what_to_do(computer, may_start, reason):
    with pytest.raises(NoRealMachines, match=reason):
        choose(computer, may_start)


def test_kvm_is_taken_only_if_a_kernel_starts_with_it():
    assert accelerator.choose(None).name == "kvm"
    without = accelerator.choose("there is no /dev/kvm")
    assert without.name == "tcg" and without.reason == "there is no /dev/kvm"
    assert "minute" in without.boot_time


@pytest.fixture
def fake_qemu(tmp_path, monkeypatch):
    """A QEMU that does what a script says, with the console's file in $console."""
    def make(script):
        program = tmp_path / "path/qemu-system-x86_64"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nfor word; do case $word in file:*) console=${{word#file:}};; esac; done\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        monkeypatch.setattr(accelerator.os, "access", lambda *_: True)
        return accelerator.try_kvm(tmp_path / "kernel", tmp_path)
    return make


def test_a_kernel_that_speaks_is_believed(fake_qemu):
    assert fake_qemu("echo 'Linux version 6.1' > $console; exec sleep 600") is None


def test_a_kvm_that_ends_at_once_says_why(fake_qemu):
    assert "(failed to set MSR)" in fake_qemu("echo 'failed to set MSR'; exit 1")


def test_a_kvm_that_hangs_is_given_up(fake_qemu, monkeypatch):
    monkeypatch.setattr(accelerator, "TRIAL_SECONDS", 0.2)
    assert "does not start with it" in fake_qemu("exec sleep 600")


def test_a_subnet_that_no_route_leads_to():
    begin = subnets.free_subnet("default via 10.0.0.1 dev eth0\n", "a")
    routes = f"{begin} dev virbr0\n0.0.0.0/0 via 10.0.0.1\nlocal 10.1.2.3 dev lo\n"
    following = subnets.free_subnet(routes, "a")
    assert {begin, following} <= set(subnets.CANDIDATES) and begin != following
    third = subnets.free_subnet(f"{routes}{following[7]} dev tun0\n", "a")
    assert third not in (begin, following)
    with pytest.raises(RuntimeError, match="in use on this computer"):
        subnets.free_subnet("192.168.0.0/16 dev eth0", "a")


def test_names_begin_at_different_subnets():
    assert len({subnets.free_subnet("", name) for name in "abcdefgh"}) > 4


RULES = {"filter": "-P INPUT ACCEPT\n-N LIBVIRT_INP\n-A INPUT -j LIBVIRT_INP\n-A INPUT -j OTHER\n", "nat": "-N LIBVIRT_PRT\n"}


def test_chains_of_libvirt_are_removed_and_others_stay():
    assert firewall.removals(RULES) == [["-t", "filter", "-D", "INPUT", "-j", "LIBVIRT_INP"],
                                        ["-t", "filter", "-X", "LIBVIRT_INP"], ["-t", "nat", "-X", "LIBVIRT_PRT"]]


def test_chains_that_another_libvirtd_uses_stay():
    in_use = {**RULES, "nat": RULES["nat"] + "-A LIBVIRT_PRT -s 192.168.122.0/24 -j MASQUERADE\n"}
    assert firewall.removals(in_use) == []


def test_each_state_folder_has_a_name_of_its_own(tmp_path):
    assert own_name(tmp_path / "a") != own_name(tmp_path / "b")
    assert own_name(tmp_path / "a") == own_name(tmp_path / "a")


def test_a_path_that_libvirt_cannot_use_is_refused(tmp_path):
    for folder in (tmp_path / ("long" * 30), tmp_path / "a b"):
        with pytest.raises(RuntimeError, match="--state-dir"):
            PrivateLibvirt(folder).start()
        assert not folder.exists()
    assert subprocess.run(["mountpoint", "-q", "/etc/libvirt"]).returncode != 0, "mounts are in a namespace of their own"
