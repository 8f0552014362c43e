"""The lists of a launcher's web server (operations.md 6)."""
import gzip
import http.client
import itertools
import json
import re
import subprocess

import pytest

from images import ImageSite, image
from services import free_port, wait_for
from web_client import first_answer, get, web_config, web_config_without_zookeeper

NODE_KEYS = ("id provider label server_id public_ipv4 ipv6 state age locked pool hostname private_ipv4 AZ username "
             "connection_port launcher allocated_to hold_job comment user_data driver_data").split()
LISTS = ["/image-list", "/dib-image-list", "/image-status", "/node-list", "/request-list", "/label-list"]


@pytest.fixture
def web(site):
    """A launcher with a ready node and a request that nobody can serve; its port."""
    port = free_port()
    site.launcher(web_config(site, port))
    site.fulfilled = site.tree().add_request(["small"])
    site.tree().wait_request(site.fulfilled, "fulfilled")
    return port


def listed(port, path, **headers):
    status, _, body = get(port, path, Accept="application/json", **headers)
    assert status == 200, body
    return json.loads(body)


def columns(table: str) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[1].split("|")[1:-1]]


# operations.16.13; OT-8
def test_nodes_and_requests(site, web):
    node_id, = site.tree().nodes()
    node, = wait_for(lambda: [entry for entry in listed(web, "/node-list") if entry["state"] == "ready"],
                     "the node is listed")
    assert list(node) == NODE_KEYS
    assert (node["id"], node["provider"], node["label"], node["connection_port"]) == (
        node_id, "fake-cloud", ["small"], 22)
    assert re.fullmatch(r"00:00:00:\d\d", node["age"]) and node["locked"] in ("locked", "unlocked")
    request, = listed(web, "/request-list")
    assert list(request) == "id relative_priority state requestor node_types nodes declined_by event_id".split()
    assert (request["id"], request["nodes"], request["declined_by"]) == (site.fulfilled, [node_id], [])
    assert listed(web, "/label-list") == [{"label": "small"}]
    _, headers, body = get(web, "/node-list", Accept="application/json")
    assert headers["Content-Type"] == "application/json"
    assert body.startswith('[{"id": "' + node_id + '", "provider": "fake-cloud", "label": ["small"], ')


def test_one_node(site, web):
    node_id, = site.tree().nodes()
    assert [node["id"] for node in listed(web, f"/node-list?node_id={node_id}")] == [node_id]
    assert [node["id"] for node in listed(web, "/node-list?node_id=")] == [node_id]
    for wrong in ("0000009999", "1", "../requests", "%00", "x" * 5000):
        assert listed(web, f"/node-list?node_id={wrong}") == []
    held = site.tree().lock_node(node_id)
    wait_for(lambda: listed(web, f"/node-list?node_id={node_id}")[0]["locked"] == "locked", "the lock is seen")
    held.release()


# operations.16.14, D-63
def test_images_as_text_and_json(site):
    images = ImageSite(site)
    port = free_port()
    config = images.config([image()], [images.provider()], webapp={"listen_address": "127.0.0.1", "port": port})
    images.builder(config)
    build, number = images.wait_upload()
    site.launcher(config)
    upload, = listed(port, "/image-list?fields=state,id")
    record = images.uploads()[(build, number)]
    assert upload == {"id": build, "upload_id": number, "provider": "fake-cloud", "image": "debian",
                      "external_name": record["external_name"], "external_id": record["external_id"],
                      "state": "ready", "age": int(record["state_time"])}
    table = get(port, "/image-list?fields=state,id,nonsense")[2]
    assert columns(table) == ["Build ID", "State"] and f"| {build} | ready |" in table
    built, = listed(port, "/dib-image-list")
    assert built == {"id": f"debian-{build}", "image": "debian", "builder": built["builder"], "formats": ["qcow2"],
                     "state": "ready", "age": int(images.builds()[build]["state_time"])}
    assert listed(port, "/image-status") == [
        {"image": "debian", "paused": False, "build_request": None, "build_request_age": None}]
    site.tool("image-pause", "debian", config=config, check=True)
    wait_for(lambda: listed(port, "/image-status")[0]["paused"] is True, "the pause is seen")
    wait_for(lambda: listed(port, "/dib-image-list")[0]["state"] == "paused", "also in the builds")
    for path, command in [("/image-list", "image-list"), ("/dib-image-list", "dib-image-list")]:
        shown = site.tool(command, config=config, check=True).stdout.splitlines()
        assert columns(get(port, path)[2]) == columns("\n".join(shown))


# operations.6.1, 16.17; D-62
def test_text_or_json(web):
    for path in LISTS:
        status, headers, body = get(web, path)
        assert (status, headers["Content-Type"]) == (200, "text/plain; charset=UTF-8")
        assert body.startswith("+-") and body.endswith("-+")
    for accept, kind in [("*/*", "text/plain"), ("application/json, */*", "text/plain"), ("nonsense", "text/plain"),
                         ("application/*", "application/json"),
                         ("application/json;q=0.9, text/plain;q=0.5", "application/json")]:
        assert get(web, "/label-list", Accept=accept)[1]["Content-Type"].split(";")[0] == kind
    assert get(web, "/label-list", Accept="image/png")[0] == 406


# operations.6.6, 16.15, 16.16
def test_answers_are_kept_for_a_second(site, web):
    status, headers, body = get(web, "/request-list")
    assert headers["Access-Control-Allow-Origin"] == "*" and headers["Cache-Control"] == "max-age=1, public"
    known = headers["Last-Modified"]
    tree = site.tree()
    added = tree.add_request(["nonexistent"])
    wait_for(lambda: added in get(web, "/request-list")[2], "the new request is listed")

    limits = itertools.count(1000)

    def fresh_requests():
        """A question that nobody has asked yet."""
        return get(web, f"/api/v1/requests?limit={next(limits)}")[2]

    def is_given_again():
        """Whether an answer stays although the launcher knows of a change; not when a second has gone by meanwhile."""
        first = get(web, "/request-list")
        later = tree.add_request(["nonexistent"])
        wait_for(lambda: later in fresh_requests(), "the launcher knows of the request")
        second = get(web, "/request-list")
        return second[2] == first[2] and second[1]["Last-Modified"] == first[1]["Last-Modified"]

    wait_for(is_given_again, "the same answer is given again")

    def is_not_sent_again():
        """Whether a client that has the answer gets it without its body; not when a second has gone by meanwhile."""
        last = get(web, "/request-list")[1]["Last-Modified"]
        status, headers, body = get(web, "/request-list", If_Modified_Since=last)
        return status == 304 and body == "" and headers["Cache-Control"] == "max-age=1, public"

    wait_for(is_not_sent_again, "the client is told that it has the answer")
    assert get(web, "/request-list", If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT")[0] == 200, "from another time"
    wait_for(lambda: get(web, "/request-list", If_Modified_Since=known)[0] == 200, "what is old is given anew")
    for path in LISTS:
        assert get(web, path + "/")[0] == 404


# HTTP-6
def test_compressed_lists(site, web):
    tree = site.tree()
    nodes = [tree.add_node(state="hold", provider="elsewhere", comment="as before") for _ in range(30)]
    wait_for(lambda: nodes[-1] in get(web, "/node-list")[2], "the nodes are listed")

    def ask(method: str, path: str, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", web, timeout=10)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    for path in ("/node-list", "/api/v1/nodes"):
        plain, text = ask("GET", path, Accept="application/json", Accept_Encoding="identity")
        answer, body = ask("GET", path, Accept="application/json", Accept_Encoding="br, gzip;q=0.8")
        assert answer.headers["Content-Encoding"] == "gzip" and plain.headers["Content-Encoding"] is None
        assert answer.headers["Vary"] == plain.headers["Vary"] == "Accept, Accept-Encoding"
        assert int(answer.headers["Content-Length"]) == len(body) < len(text) / 5
        assert len(json.loads(gzip.decompress(body))) == len(json.loads(text))
        head, nothing = ask("HEAD", path, Accept="application/json", Accept_Encoding="gzip")
        assert head.headers["Content-Encoding"] == "gzip" and int(head.headers["Content-Length"]) > 0 and nothing == b""
    small, body = ask("GET", "/label-list", Accept="application/json", Accept_Encoding="gzip")
    assert small.headers["Content-Encoding"] is None and json.loads(body)
    curl = subprocess.run(["curl", "-s", "--compressed", "-H", "Accept: application/json", f"http://127.0.0.1:{web}/node-list"],
                          capture_output=True, check=True, timeout=30)
    assert {entry["id"] for entry in json.loads(curl.stdout)} >= set(nodes)


# operations.16.28
def test_pages_of_lists(site, web):
    tree = site.tree()
    nodes = sorted([tree.add_node(state="hold", provider="elsewhere") for _ in range(5)])
    wait_for(lambda: nodes[-1] in get(web, "/node-list")[2], "the nodes are listed")
    found, after = [], ""
    while page := [node["id"] for node in listed(web, f"/node-list?limit=2&after={after}")]:
        found += page
        after = page[-1]
    assert set(found) >= set(nodes) and found == sorted(set(found))
    assert get(web, "/node-list?limit=two")[0] == 400
    assert get(web, f"/node-list?fields=id&limit=1&after={nodes[3]}")[2].splitlines()[3] == f"| {nodes[4]} |"


# operations.6.2, 6.6
def test_lists_take_any_method_and_forms(web):
    def ask(method, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", web, timeout=10)
        connection.request(method, "/node-list?fields=id", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    status, shown = ask("GET")
    assert status == 200 and columns(shown) == ["ID"] and len(shown.splitlines()) > 4
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask("HEAD") == (200, "")
    for method in ("POST", "PUT", "DELETE", "BREW"):
        assert ask(method, "fields=state", **form) == (200, shown), "the query counts more"
    assert len(ask("POST", "node_id=0000009999", **form)[1].splitlines()) == 4


# operations.6.6
def test_errors_as_they_are_asked_for(web):
    for accept, kind, begin in [("*/*", "text/plain; charset=UTF-8", "404 Not Found\n\n"),
                                ("text/html,*/*;q=0.8", "text/html; charset=UTF-8", "<html>"),
                                ("application/*", "application/json", '{"message":')]:
        status, headers, body = get(web, "/none", Accept=accept)
        assert (status, headers["Content-Type"]) == (404, kind) and body.startswith(begin)


def test_columns_that_there_are_not_make_no_table(web):
    assert get(web, "/node-list?fields=nonsense")[2] == ""


def test_nothing_is_listed_before_zookeeper_is_reached(site):
    port = free_port()
    site.launcher(web_config_without_zookeeper(site, port), wait=False)
    status, _, body = first_answer(port, "/node-list")
    assert status == 503 and "not read yet" in body


# HTTP-5
def test_curl_and_pythons_client_are_understood(web):
    url = f"http://127.0.0.1:{web}"

    def curl(*words) -> str:
        words = ["curl", "-sS", "-i", "--noproxy", "*", "--max-time", "30", *words]
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout

    asking = ["-H", "Expect: 100-continue", "-H", "Content-Type: application/json", "-d", '{"name": "unit", "build": {}}']
    answer = curl("--expect100-timeout", "25", *asking, url + "/api/v1/job-events")
    assert answer.startswith("HTTP/1.1 100 Continue") and "HTTP/1.1 200 OK" in answer
    assert curl("--request-target", url + "/label-list", url).splitlines()[0] == "HTTP/1.1 200 OK"
    assert curl("--http1.0", "-H", "Connection: keep-alive", url + "/label-list").count("Connection: keep-alive") == 1
    assert curl("-I", url + "/node-list").startswith("HTTP/1.1 200 OK")
    assert curl("-X", "OPTIONS", url + "/api/v1/nodes").startswith("HTTP/1.1 405 ")
    connection = http.client.HTTPConnection("127.0.0.1", web, timeout=20)
    chunks = iter([b'{"name": "unit", ', b'"build": {}}'])
    connection.request("POST", "/api/v1/job-events", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read()
    connection.request("GET", "/label-list")
    assert connection.getresponse().status == 200
    connection.close()
