"""Sections of the driver libvirt where that driver is not installed."""
from nodepool_helpers import fake_provider
from services import wait_for


def section(**settings):
    return {"name": "here", "driver": "libvirt", "cloud-images": [{"name": "debian", "username": "debian"}],
            "pools": [{"name": "main", "labels": [{"name": "small", "cloud-image": "debian"}]}], **settings}


# LV-2
def test_a_section_is_checked_without_its_driver(site):
    config = site.config(providers=[section()])
    assert site.tool("config-validate", config=config).returncode == 0
    config = site.config(providers=[section(**{"storage-pol": "x"})])
    refused = site.tool("config-validate", config=config)
    assert refused.returncode == 1 and "storage-pool" in refused.stderr + refused.stdout


# LV-2
def test_the_launcher_names_the_package_of_a_driver_that_it_lacks(site):
    launcher = site.launcher(site.config(providers=[section(), fake_provider()]), wait=False)
    skipped = "provider here is skipped: this program has no driver libvirt"
    wait_for(lambda: skipped in launcher.output(), "the launcher skips the provider")
    assert "nodepool-libvirt, install it" in launcher.output()
