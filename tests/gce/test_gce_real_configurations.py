"""Configurations that installations really use with this driver are served, every label of them."""
import json
import pathlib

import pytest
import yaml
from gce_project import GceSite, Project
from services import wait_for

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "data" / "configs"
# Of tests/data/configs/README.md, by date. The last one names a cloud-image that it does not have.
DATES = ["2020-04-02", "2020-08-07", "2021-02-19", "2022-08-15", "2024-04-16"]
UNKNOWN_IMAGE = "2025-01-18"
BIG_TYPES = {"n1-standard-16": [16, 61440], "e2-standard-16": [16, 65536]}
FAMILIES = {"debian-10": "debian-10-buster-v20220719", "debian-11": "debian-11-bullseye-v20240312"}


def real(date: str) -> dict:
    path, = CONFIGS.glob(f"GerritCodeReview__*__{date}__*.yaml")
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def big_project(gce_process, tmp_path_factory):
    """A project with the machine types and the image families of these files."""
    folder = tmp_path_factory.mktemp("gce-real")
    world = json.loads((gce_process.commands / "lib/world.json").read_text())
    world["machine_types"].update(BIG_TYPES)
    world["images"] += [{"project": "debian-cloud", "name": name, "family": family, "size": 10,
                         "created": "2024-03-12T00:00:00.000-07:00"} for family, name in FAMILIES.items()]
    (folder / "world.json").write_text(json.dumps(world))
    project = Project(folder / "state", gce_process.commands)
    project.up("--world", folder / "world.json")
    yield project
    project.down("--remove")


@pytest.fixture
def real_site(tmp_path, shared_zookeeper, big_project):
    big_project.reset()
    site = GceSite(tmp_path, shared_zookeeper.hosts, big_project)
    yield site
    site.stop()


def configure(site: GceSite, date: str) -> pathlib.Path:
    """The file with the project, the ZooKeeper servers and the SSH port of this place, and more calls per second."""
    content = real(date)
    provider, = content["providers"]
    provider |= {"project": "gcloud-project", "rate": 50}
    for image in provider["cloud-images"]:
        image["connection-port"] = site.project.ssh_port
    return site.config(labels=content["labels"], providers=[provider])


# GCE-63
@pytest.mark.parametrize("date", DATES)
def test_every_label_is_served(real_site, date):
    project, tree = real_site.project, real_site.tree()
    pool, = real(date)["providers"][0]["pools"]
    real_site.launcher(configure(real_site, date))
    requests = {label["name"]: tree.add_request([label["name"]]) for label in pool["labels"]}
    for label in pool["labels"]:  # max-servers lets four run at a time
        held = tree.use(requests[label["name"]])
        node = tree.node(held[0][0])
        instance, = [one for one in project.instances() if one["name"] == node["external_id"]]
        assert instance["machineType"].endswith(f"/{label['instance-type']}")
        assert node["interface_ip"] == node["private_ipv4"] == instance["networkInterfaces"][0]["networkIP"]
        # The pool's key is read by the driver alone; some files have it in a place where nobody reads it.
        assert bool(node["host_keys"]) == pool.get("host-key-checking", True)
        tree.give_back(held)
    wait_for(lambda: not project.instances() and not tree.nodes(), "nothing is left", 60)
    assert project.count("instances.insert") == len(pool["labels"])


# GCE-2
def test_a_label_with_a_cloud_image_that_does_not_exist_is_named(real_site):
    launcher = real_site.launcher(configure(real_site, UNKNOWN_IMAGE), wait=False)
    wait_for(lambda: "debian-bookworm" in launcher.output() and "cloud-image" in launcher.output(), "the log names it", 30)
    assert real_site.project.count("instances.insert") == 0
