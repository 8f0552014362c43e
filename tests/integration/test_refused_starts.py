"""Configurations with which a launcher does not start: status 1, and the reason."""
import pytest
import yaml


def refused(site, config, options=()):
    launcher = site.launcher(config, wait=False, options=options)
    assert launcher.wait() == 1
    assert site.observer().components("launcher") == {}
    return launcher.output()


# configuration.17.5
def test_a_pool_that_names_a_label_of_a_section_that_was_overridden(site):
    config = site.config()
    settings = yaml.safe_load(config.read_text())
    labels = settings.pop("labels")
    config.write_text(yaml.safe_dump({"labels": labels}) + yaml.safe_dump({"labels": [{"name": "other"}]})
                      + yaml.safe_dump(settings))
    assert "small" in refused(site, config)


# configuration.17.8
def test_a_secure_file_that_names_an_unknown_image(site):
    secure = site.folder / "secure.yaml"
    secure.write_text(yaml.safe_dump({"diskimages": [{"name": "unheard-of", "env-vars": {"A": "1"}}]}))
    assert "unheard-of" in refused(site, site.config(), ["-s", secure])


# configuration.17.15
@pytest.mark.parametrize("program", ["tool", "launcher"])
def test_no_tls_towards_another_host(site, program):
    config = site.config("remote", zookeeper_servers=[{"host": "192.0.2.1", "port": 2181}])
    if program == "launcher":
        said = refused(site, config)
    else:
        done = site.tool("list", config=config)
        assert done.returncode == 1
        said = done.stderr
    assert "TLS connection to ZooKeeper is required" in said
