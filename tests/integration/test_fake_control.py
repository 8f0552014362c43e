"""The simulated cloud under the hands of a test (D-81)."""
import http.client
import json

from nodepool_helpers import fake_provider
from services import free_port, wait_for


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, json.dumps(body) if body is not None else None)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


# D-81
def test_the_cloud_is_controlled_over_http(site):
    port = free_port()
    simulation = {"control-port": port}
    site.launcher(site.config(providers=[fake_provider(simulation=simulation)]))
    tree = site.tree()
    assert ask(port, "GET", "/servers") == (200, [])
    assert ask(port, "POST", "/faults", {"hanging-creates": 1})[0] == 200
    hanging = tree.add_request(["small"])
    server, = wait_for(lambda: ask(port, "GET", "/servers")[1], "the server is there")
    assert server["status"] == "BUILD" and server["name"].startswith("np")
    # It vanishes: the attempt fails, the next one is good.
    assert ask(port, "DELETE", f"/servers/{server['id']}")[0] == 200
    tree.wait_request(hanging, "fulfilled")
    # A changed section makes a new provider; the port stays.
    site.config(providers=[fake_provider(simulation={**simulation, "create-latency": 0.2})])
    wait_for(lambda: ask(port, "GET", "/settings")[1]["create-latency"] == 0.2, "the new settings are in force")
    assert ask(port, "PUT", "/settings", {"limits": {"instances": 1}})[1]["limits"]["instances"] == 1


# D-81
def test_a_command_opens_no_port(site):
    config = site.config(providers=[fake_provider(simulation={"control-port": free_port()})])
    done = site.tool("alien-list", config=config, check=True)
    assert "control" not in done.stderr and "Serving" not in done.stderr, done.stderr
