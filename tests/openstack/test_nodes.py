"""Nodes of a real cloud, from the request to the end of the machine."""


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
