"""A real libvirt that is reached by qemu+ssh, with an SSH server on this computer."""
import pytest
from services import wait_for

# Nobody answers there: the scan of the host keys fails.
NO_SSH_PORT = 9


@pytest.fixture
def ssh_uri(libvirt_site, sshd):
    """The site's libvirt, by an ssh that knows the server's host key; sshd writes its log to the folder of the test."""
    known_hosts, command = libvirt_site.folder / "known_hosts", libvirt_site.folder / "ssh"
    known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
    command.write_text(f'#!/bin/sh\nexec ssh -F none -o UserKnownHostsFile={known_hosts} "$@"\n')
    command.chmod(0o755)
    return (f"qemu+ssh://root@127.0.0.1:{sshd.port}/system?socket={libvirt_site.host.state}/run/libvirt-sock"
            f"&keyfile={sshd.login_key()}&command={command}&proxy=netcat")


def with_failing_scan(site, **settings):
    provider = site.provider(**{"boot-timeout": 10, "launch-retries": 1, **settings})
    provider["cloud-images"][0]["connection-port"] = NO_SSH_PORT
    return provider


# LV-15
def test_the_console_of_a_machine_is_logged_over_ssh(libvirt_site, ssh_uri):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[with_failing_scan(libvirt_site, uri=ssh_uri)]))
    tree.wait_request(tree.add_request(["small"]), "failed", 400)
    shown = launcher.output()
    assert "Console of the machine whose host keys could not be read:" in shown
    assert "Linux version" in shown, "what the machine has printed"
    wait_for(lambda: host.domains() == [] and host.volumes() == [], "nothing is left", 60)


# LV-15
def test_a_console_without_a_kernels_words_gets_a_hint(libvirt_site):
    tree = libvirt_site.tree()
    provider = with_failing_scan(libvirt_site)
    silent = {name: value.replace("console=ttyS0", "console=tty0 quiet") for name, value in libvirt_site.host.direct_kernel().items()}
    provider["cloud-images"][0].update(silent)
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree.wait_request(tree.add_request(["small"]), "failed", 400)
    assert "the console is empty: no serial console in the image, or it never started (without KVM)" in launcher.output()


# driver-libvirt.md 4.3
def test_a_host_key_that_is_not_known_is_reported(libvirt_site, ssh_uri):
    (libvirt_site.folder / "known_hosts").write_text("")
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[libvirt_site.provider(uri=ssh_uri)]), wait=False)
    wait_for(lambda: "Host key verification failed" in launcher.output(), "the reason is logged", 30)
    assert "ssh-keyscan" in launcher.output(), "with the command that helps"
