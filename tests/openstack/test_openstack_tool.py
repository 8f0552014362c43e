"""The command line asks a real cloud."""
import json
import os

from services import wait_for


def test_aliens_and_deletion_at_once(openstack_site):
    cloud, api = openstack_site.cloud, openstack_site.cloud.api
    tree = openstack_site.tree()
    launcher = openstack_site.launcher()
    held = tree.use(tree.add_request(["tiny"]))
    foreign = api.compute.create_server(name="foreign", image_id=next(api.image.images(name="cirros")).id,
                                        flavor_id=api.compute.find_flavor("m1.tiny").id,
                                        networks=[{"uuid": api.network.find_network("dual").id}])
    launcher.kill()
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(cloud.clouds_yaml)
    done = openstack_site.tool("alien-list", "--json", check=True)
    assert [row["server_id"] for row in json.loads(done.stdout)] == [foreign.id]
    marked = openstack_site.tool("alien-list", "--nodepool-metadata", "--json", check=True)
    assert json.loads(marked.stdout) == []
    assert json.loads(openstack_site.tool("alien-image-list", "--json", check=True).stdout) == []
    for node_id, lock in held:
        lock.release()
        done = openstack_site.tool("delete", "--now", node_id, timeout=120)
        assert done.returncode == 0, done.stderr
        assert tree.node(node_id) is None
    wait_for(lambda: [server.id for server in cloud.servers()] == [foreign.id], "the node's server is gone")
