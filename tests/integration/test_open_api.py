"""/api/v1/openapi.json: whether it is sound, and whether answers of all kinds are as it says."""
import json
import re

import jsonschema
import pytest

from lease_client import REQUESTS, LeaseClient, LeaseSite
from nodepool_helpers import fake_provider
from services import wait_for
from web_client import get

METHODS = {"get", "post", "delete"}


@pytest.fixture
def leases(site):
    leases = LeaseSite(site, labels=[{"name": "small"}, {"name": "never"}], providers=[
        fake_provider(), fake_provider("closed", labels=("never",), **{"max-servers": 0})])
    leases.token("ci", "--scope", "request", "--max-nodes", "2")
    leases.token("reader", "--scope", "read")
    leases.start()
    return leases


def document(leases) -> dict:
    return json.loads(get(next(iter(leases.launchers)), "/api/v1/openapi.json")[2])


def operations(description):
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def schemas_in(value):
    """Every schema of the document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "schema":
                yield inner
            else:
                yield from schemas_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas_in(inner)


# OPENAPI-1
def test_the_document_is_sound(leases):
    description = document(leases)
    assert set(description) == {"openapi", "info", "paths", "components"} and description["openapi"] == "3.1.0"
    assert set(description["info"]) == {"title", "version"}
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[a-z]+[A-Za-z]+", name) for name in names), names
    assert {"getNodes", "postRequests", "postRequestsByIdRenew", "deleteRequestsById", "getLeases"} <= set(names)
    for path, method, operation in operations(description):
        where = f"{method} {path}"
        assert path.startswith("/") and method in METHODS, where
        assert operation["summary"].endswith("."), where
        assert set(operation) <= {"operationId", "summary", "parameters", "requestBody", "responses", "security"}, where
        given = {(parameter["in"], parameter["name"]): parameter for parameter in operation.get("parameters", [])}
        assert len(given) == len(operation.get("parameters", [])), where
        in_path = set(re.findall(r"\{(\w+)\}", path))
        assert {name for place, name in given if place == "path"} == in_path, where
        assert all(given["path", name]["required"] for name in in_path), where
        assert any(status.startswith("2") for status in operation["responses"]), where
        for status, answer in operation["responses"].items():
            assert re.fullmatch(r"[2-5]\d\d", status) and answer["description"], where
            assert ("content" in answer) == (status not in ("204", "304")), where
        for schemes in operation["security"]:
            assert set(schemes) <= set(description["components"]["securitySchemes"]), where
    for schema in schemas_in(description):
        jsonschema.Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', json.dumps(description)))
    assert references == set(description["components"]["schemas"])


# OPENAPI-1
def test_every_path_takes_the_methods_that_are_described(leases):
    port = next(iter(leases.launchers))
    client = LeaseClient([port], None)
    description = document(leases)
    for path, methods in description["paths"].items():
        answer = client.ask("PATCH", path.replace("{id}", "0" * 32))
        if answer.status != 405:
            assert list(methods) == ["get"] and answer.status == 200, "a list, which takes any method"
            continue
        allowed = {method.lower() for method in answer.headers["Allow"].split(", ")} - {"head"}
        assert allowed == set(methods), path
    for path in ("/api/v1/requests/x/y/z", "/api/v1", "/api/v2/nodes"):
        assert get(port, path)[0] == 404


class CheckedClient(LeaseClient):
    """Compares each answer with the document; `seen` has operation and status of each."""

    def __init__(self, ports, token, description):
        super().__init__(ports, token)
        self.description = description
        self.seen = set()

    def ask(self, method, path, body=None, timeout=70, **headers):
        answer = super().ask(method, path, body, timeout, Accept="application/json", **headers)
        template = re.sub(r"/requests/[^/?]+", "/requests/{id}", path.split("?")[0])
        operation = self.description["paths"][template][method.lower()]
        self.seen.add((operation["operationId"], answer.status))
        assert str(answer.status) in operation["responses"], f"{method} {path}: {answer.status} is not described"
        content = operation["responses"][str(answer.status)].get("content")
        if content is None:
            assert answer.text == ""
            return answer
        media = answer.headers["Content-Type"].split(";")[0]
        schema = {**content[media]["schema"], "components": self.description["components"]}
        value = answer.json if media == "application/json" else answer.text
        jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
        return answer


# OPENAPI-2
def test_answers_of_all_kinds_are_as_described(site, leases):
    description = document(leases)

    def client(token):
        return CheckedClient(list(leases.launchers), token, description)

    ci, reader, nobody = client(leases.texts["ci"]), client(leases.texts["reader"]), client(None)
    lease = ci.make(["small"])
    one = f"{REQUESTS}/{lease}"
    node = ci.held(lease)["nodes"][0]["id"]
    assert ci.renew(lease).status == 200 and ci.list()
    for body, status in [({"labels": []}, 400), (b"{", 400), ({"labels": ["small"] * 3}, 403), ({"labels": ["small"] * 2}, 409),
                         (b" " * 70_000, 413), ({"labels": ["small"], "tenant": 7}, 400)]:
        assert ci.ask("POST", REQUESTS, body).status == status
    assert ci.ask("POST", REQUESTS, b"labels=small", Content_Type="application/x-www-form-urlencoded").status == 415
    for key_status in (201, 200):
        keyed = ci.ask("POST", REQUESTS, {"labels": {"small": 1}}, Idempotency_Key="k")
        assert keyed.status == key_status
    assert reader.ask("POST", REQUESTS, {"labels": ["small"]}).status == 403
    assert reader.show(lease).status == 404 and reader.renew(lease).status == 404 and reader.end(lease).status == 404
    assert ci.ask("GET", f"{one}?wait=soon").status == 400
    for body, status in [({"node": 7}, 400), ({"node": "0000009999"}, 409), ({"node": node, "reason": "r"}, 200)]:
        assert ci.ask("POST", f"{one}/hold", body).status == status
    for method, path in [("POST", REQUESTS), ("GET", one), ("POST", f"{one}/renew"), ("POST", f"{one}/hold"), ("DELETE", one),
                         ("GET", "/api/v1/leases"), ("GET", "/api/v1/token")]:
        assert nobody.ask(method, path, {} if method == "POST" else None).status == 401
        assert nobody.ask(method, path, {} if method == "POST" else None, Origin="http://evil.example").status in (401, 403)
    wrong = client("ci.0123456789")
    assert [wrong.ask("GET", one).status, wrong.ask("GET", one).status] == [401, 429]
    assert ci.end(lease).status == 204 and ci.end(keyed.json["id"]).status == 204
    wait_for(lambda: ci.show(keyed.json["id"]).status == 404, "its node no longer counts")
    failed = ci.make(["never"])
    wait_for(lambda: ci.show(failed).json["state"] == "failed", "it fails")
    assert ci.renew(failed).status == 409
    for path, methods in description["paths"].items():
        if "get" in methods and "{" not in path and path not in ("/api/v1/events", "/api/v1/leases", "/api/v1/token"):
            assert nobody.ask("GET", path).status in (200, 406), "406: there is only text"
    assert nobody.ask("GET", "/api/v1/nodes?limit=many").status == 400
    seen = ci.seen | reader.seen | nobody.seen | wrong.seen
    assert len(seen) > 40, sorted(seen)
