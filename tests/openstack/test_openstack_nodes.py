"""Nodes of a real cloud, from the request to the end of the machine."""
from services import wait_for


def test_a_node_lives_and_dies(openstack_site):
    cloud = openstack_site.cloud
    tree = openstack_site.tree()
    openstack_site.launcher()
    request = tree.add_request(["small"])
    held = tree.use(request)
    node = tree.node(held[0][0])
    servers = cloud.servers(nodepool_node_id=held[0][0])
    assert [server.id for server in servers] == [node["external_id"]]
    assert servers[0].name == "np" + held[0][0]
    assert servers[0].metadata["nodepool_provider_name"] == "real"
    assert servers[0].metadata["nodepool_image_name"] == "cirros"
    assert servers[0].metadata["groups"] == "real,cirros,small"
    assert node["cloud"] == "ci-direct" and node["az"] in ("az1", "az2")
    assert node["interface_ip"].startswith(("127.66.", "fd00:64:"))
    assert node["resources"] == {"cores": 1, "instances": 1, "ram": 2048}
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert cloud.servers() == []


def test_fifty_nodes_at_once(openstack_site):
    """Lists and look-ups are shared: the calls of a node's life are one POST, one DELETE, and parts of lists."""
    cloud, count = openstack_site.cloud, 50
    tree = openstack_site.tree()
    provider = openstack_site.provider(**{"launch-timeout": 600})
    launcher = openstack_site.launcher(openstack_site.config(providers=[provider]))
    calls = cloud.calls()
    requests = [tree.add_request(["small"] * 5) for _ in range(count // 5)]
    held = []
    for request in requests:
        tree.wait_request(request, "fulfilled", 600)
        held += tree.use(request)
    assert len(held) == count and len(cloud.servers()) == count
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id, 300)
    assert cloud.servers() == []
    counted = calls.counted("nova")
    own = [line for line in launcher.output().splitlines() if "DEBUG nodepool.http: " in line]
    print(f"\nCalls of {count} nodes' lives: {len(own)} in all; nova's access log: {counted}")
    assert counted["POST /v2.1/servers"] == count
    assert counted["DELETE /v2.1/servers/ID"] == count
    # Lists follow the time, not the nodes; here the clean-up looks at volumes every second.
    lists = len([line for line in own if "/servers/detail" in line or "/volumes/detail" in line])
    assert len(own) - lists - 2 * count <= 30, "nothing else is asked for each node"
    assert lists < 3 * count


def test_floating_ips(openstack_site):
    cloud = openstack_site.cloud
    provider = openstack_site.provider(cloud="ci", networks=["private"])
    tree = openstack_site.tree()
    openstack_site.launcher(openstack_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small", "tiny"]))
    addresses = {ip.floating_ip_address for ip in cloud.floating_ips()}
    assert len(addresses) == 2
    for node_id, _ in held:
        node = tree.node(node_id)
        assert node["public_ipv4"] in addresses and node["interface_ip"] == node["public_ipv4"]
        assert node["private_ipv4"].startswith("127.64.")
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id, 60)
    assert cloud.servers() == [] and cloud.floating_ips() == []


def test_without_floating_ips(openstack_site):
    provider = openstack_site.provider(cloud="ci-private", networks=["private"], pool={"auto-floating-ip": False})
    tree = openstack_site.tree()
    openstack_site.launcher(openstack_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    assert node["public_ipv4"] == "" and node["interface_ip"] == node["private_ipv4"]
    assert openstack_site.cloud.floating_ips() == []
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)


def test_by_an_application_credential(openstack_site):
    provider = openstack_site.provider(cloud="ci-appcred", pool={"auto-floating-ip": False})
    tree = openstack_site.tree()
    openstack_site.launcher(openstack_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["tiny"]))
    assert tree.node(held[0][0])["interface_ip"].startswith(("127.66.", "fd00:64:"))
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)


def test_boot_from_volume(openstack_site):
    cloud = openstack_site.cloud
    tree = openstack_site.tree()
    openstack_site.launcher()
    held = tree.use(tree.add_request(["volume"]))
    assert tree.node(held[0][0])["resources"]["volume-gb"] == 5
    volume, = cloud.api.block_storage.volumes()
    assert volume.size == 5
    assert volume.metadata["nodepool_node_id"] == held[0][0] and volume.metadata["nodepool_provider_name"] == "real"
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    wait_for(lambda: not list(cloud.api.block_storage.volumes()), "the volume is gone")
