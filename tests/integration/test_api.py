"""The JSON API of a launcher, against its own description."""
import json

import jsonschema
import pytest

from images import ImageSite, image
from services import free_port, wait_for
from sse_client import EventStream
from standalone import Standalone
from web_client import first_answer, get, web_config, web_config_without_zookeeper

RESOURCES = ["nodes", "requests", "images", "builds", "uploads", "providers", "components", "jobs", "runners", "runner_jobs"]


def unreachable():
    """A provider whose cloud is not there."""
    return {"name": "unreachable", "driver": "openstack", "cloud": "nowhere",
            "cloud-images": [{"name": "image", "image-id": "x"}],
            "pools": [{"name": "main", "labels": [{"name": "rare", "cloud-image": "image", "min-ram": 1}]}]}


def document(port):
    status, headers, body = get(port, "/api/v1/openapi.json")
    assert status == 200 and headers["Content-Type"] == "application/json"
    return json.loads(body)


def check(port, path, query=""):
    """The answer of a path, which is as the document says."""
    description = document(port)
    operation = description["paths"][path]["get"]
    status, headers, body = get(port, path + query, Accept="application/json")
    answer = operation["responses"][str(status)]["content"][headers["Content-Type"].split(";")[0]]
    schema = {**answer["schema"], "components": description["components"]}
    jsonschema.Draft202012Validator.check_schema(schema)
    value = json.loads(body)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    return value


def entries(port, resource, query=""):
    value = check(port, f"/api/v1/{resource}", query)
    assert list(value) == [resource, "is_complete"]
    return value[resource]


def test_every_answer_is_as_the_document_says(site, monkeypatch):
    clouds = site.folder / "clouds.yaml"
    clouds.write_text(json.dumps({"clouds": {"nowhere": {"auth": {
        "auth_url": f"http://127.0.0.1:{free_port()}/v3", "username": "u", "password": "p", "project_name": "n"}}}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    images = ImageSite(site)
    port = free_port()
    config = images.config([image()], [images.provider(), unreachable()],
                           labels=[{"name": "small"}, {"name": "rare"}],
                           webapp={"listen_address": "127.0.0.1", "port": port})
    images.builder(config)
    build, upload = images.wait_upload()
    site.launcher(config, wait=False)
    first_answer(port, "/ready")
    tree = site.tree()
    held = tree.add_node(state="hold", type=["small"], provider="elsewhere", connection_port={"token": "secret"},
                         user_data={"any": ["thing"]}, resources={"cores": 1.5}, hold_job="j", hold_expiration=60)
    waiting = tree.add_request(["rare"], tenant_name="t", provider="unreachable")
    wait_for(lambda: waiting in get(port, "/api/v1/requests")[2], "the request is known")
    found = {resource: entries(port, resource) for resource in RESOURCES}
    assert [node["id"] for node in entries(port, "nodes", "?provider=elsewhere&label=small")] == [held]
    assert found["builds"][0]["id"] == build and found["uploads"][0]["id"] == upload
    assert found["images"][0]["newest_ready_build"] == build
    assert {component["kind"] for component in found["components"]} >= {"launcher", "builder"}
    assert [request["id"] for request in entries(port, "requests", "?state=requested&label=rare")] == [waiting]


@pytest.fixture
def web(site):
    port = free_port()
    site.launcher(web_config(site, port))
    return port


def test_every_path_of_the_document_is_there(web):
    paths = document(web)["paths"]
    assert {f"/api/v1/{resource}" for resource in RESOURCES} < set(paths)
    for path, operations in paths.items():
        if path == "/api/v1/job-events":
            assert list(operations) == ["post"]
            jsonschema.Draft202012Validator.check_schema(
                operations["post"]["requestBody"]["content"]["application/json"]["schema"])
            continue
        if path == "/api/v1/events":
            with EventStream(web) as stream:
                assert "text/event-stream" in stream.head and stream.next().name == "hello"
            continue
        with_token = [method for method, operation in operations.items() if {} not in operation["security"]]
        if "get" in with_token:
            assert get(web, path)[0] == 403, "there are no tokens"
        if "get" not in set(operations) - set(with_token):
            continue
        status, headers, body = get(web, path)
        if path.endswith("/log"):
            assert status == 404 and "There is nothing at" not in body, "there is no such build"
            continue
        assert status == 200, path
        assert headers["Content-Type"].split(";")[0] in operations["get"]["responses"]["200"]["content"]


def test_refusals_are_as_the_document_says(web):
    for query, message in [("?colour=red", "There is no parameter"), ("?limit=many", "limit is a number."),
                           ("?state=bogus", "not bogus.")]:
        assert message in check(web, "/api/v1/nodes", query)["message"]
        assert get(web, "/api/v1/nodes" + query)[2].startswith("400 Bad Request\n")


def test_before_zookeeper_is_reached(site):
    port = free_port()
    site.launcher(web_config_without_zookeeper(site, port), wait=False)
    first_answer(port, "/api/v1/providers")
    assert entries(port, "providers") == []
    for resource in set(RESOURCES) - {"providers"}:
        assert "not read yet" in check(port, f"/api/v1/{resource}")["message"]


def test_standalone_serves_it_too(tmp_path):
    running = Standalone(tmp_path).start()
    try:
        running.wait_ready()
        port = running.web_port
        assert entries(port, "nodes", "?state=ready")[0]["provider"] == "fake-cloud"
        assert entries(port, "providers")[0]["is_up"] is True
    finally:
        running.process.stop()
