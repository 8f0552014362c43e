"""Nodes of Compute Engine, from the request to the end of the instance."""
from gce_project import KEY


# GCE-4, GCE-5, GCE-6, GCE-13
def test_a_node_lives_and_dies(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    launcher = gce_site.launcher(gce_site.config(providers=[
        gce_site.provider(pool={"node-attributes": {"rack": "none"}})]))
    held, node = gce_site.node(tree)
    node_id = held[0][0]
    instance, = project.instances("RUNNING")
    interface, = instance["networkInterfaces"]
    assert node["external_id"] == instance["name"] == f"np{node_id}"
    assert (node["cloud"], node["region"], node["az"]) == ("Google", "us-central1", "us-central1-a")
    assert node["public_ipv4"] == node["interface_ip"] == interface["accessConfigs"][0]["natIP"]
    assert node["private_ipv4"] == interface["networkIP"]
    assert node["attributes"] == {"rack": "none"} and node["image_id"] == "debian"
    assert {key.split()[0] for key in node["host_keys"]} >= {"ssh-ed25519", "ssh-rsa"}
    assert node["resources"] == {"cores": 2, "instances": 1, "ram": 4096, "CPUS": 2, "CPUS_ALL_REGIONS": 2,
                                 "IN_USE_ADDRESSES": 1, "DISKS_TOTAL_GB": 10}
    made, = project.calls("instances.insert")
    metadata = {item["key"]: item["value"] for item in made["body"].pop("metadata")["items"]}
    mark = metadata.pop("nodepool_attempt")
    marks = {"nodepool_node_id": node_id, "nodepool_pool_name": "main", "nodepool_provider_name": "gce"}
    assert metadata == {**marks, "ssh-keys": f"zuul:{KEY}"}
    image = "https://www.googleapis.com/compute/v1/projects/debian-cloud/global/images/debian-12-bookworm-v20240617"
    assert made["body"] == {
        "name": f"np{node_id}", "machineType": "zones/us-central1-a/machineTypes/e2-medium",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {
            "sourceImage": image, "diskType": "zones/us-central1-a/diskTypes/pd-standard", "diskSizeGb": "10"}}],
        "networkInterfaces": [{"network": "global/networks/default",
                               "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]}],
        "serviceAccounts": [], "labels": {**marks, "nodepool_attempt": mark},
    }
    tree.give_back(held)
    tree.wait_node_gone(node_id)
    assert project.instances() == []
    assert project.count("instances.insert") == project.count("instances.delete") == 1
    assert "ya29." not in launcher.output() and "PRIVATE KEY" not in launcher.output()


# GCE-7, GCE-10
def test_how_nodes_are_reached(gce_site):
    gce_site.launcher(gce_site.config(providers=[
        gce_site.provider(pool={"use-internal-ip": True, "host-key-checking": False})]))
    _, node = gce_site.node(gce_site.tree())
    assert node["interface_ip"] == node["private_ipv4"] != node["public_ipv4"]
    assert node["host_keys"] == []


# GCE-8
def test_addresses(gce_site):
    gce_site.launcher(gce_site.config(providers=[gce_site.provider(pool={
        "host-key-checking": False, "network": "ci", "subnetwork": "ci-nodes", "public-ipv4": False, "public-ipv6": True})]))
    _, node = gce_site.node(gce_site.tree())
    assert node["public_ipv4"] is None and node["interface_ip"] == node["public_ipv6"]


# GCE-61, GCE-6
def test_two_providers_in_one_process(gce_site):
    other = gce_site.provider(name="GCE.main", label={"name": "other"}, pool={"name": "second"})
    launcher = gce_site.launcher(gce_site.config(labels=[{"name": "small"}, {"name": "other"}],
                                                 providers=[gce_site.provider(), other]))
    tree = gce_site.tree()
    held = tree.use(tree.add_request(["small"])) + tree.use(tree.add_request(["other"]))
    tree.give_back(held)
    for node, *_ in held:
        tree.wait_node_gone(node)
    assert gce_site.project.instances() == [] and "Launch attempt" not in launcher.output()


# GCE-60
def test_the_console_of_a_node_whose_keys_cannot_be_read(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    project.set(ssh_delay_ms=60000)
    launcher = gce_site.launcher(gce_site.config(providers=[
        gce_site.provider(**{"boot-timeout": 3, "launch-retries": 1})]))
    project.control("/console", {"name": "np0000000000", "text": "Kernel panic\n"})
    tree.wait_request(tree.add_request(["small"]), "failed", 60)
    assert "Kernel panic" in launcher.output() and project.count("instances.getSerialPortOutput") == 1
