"""Sections of the driver libvirt where that driver is not installed."""


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
