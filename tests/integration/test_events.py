"""The stream of events, the latest changes and the samples of a launcher (http.md 1)."""
import json
import resource
import time

import pytest

from services import free_port, wait_for
from sse_client import EventStream
from standalone import Standalone
from web_client import first_answer, get, web_config, web_config_without_zookeeper


@pytest.fixture
def web(site):
    port = free_port()
    site.launcher(web_config(site, port))
    return port


def about(topic, **fields):
    return lambda event: event.name == topic and all(event.data.get(key) == value for key, value in fields.items())


def held(site, **fields) -> str:
    """A node that no launcher touches."""
    return site.tree().add_node(state="hold", provider="elsewhere", hold_expiration=0, **fields)


# PAGE-1
def test_a_change_is_streamed_at_once(site, web):
    node = held(site)
    wait_for(lambda: node in get(web, "/api/v1/nodes")[2], "the node is listed")
    with EventStream(web, "/api/v1/events?topics=nodes") as stream:
        assert "Content-Type: text/event-stream" in stream.head and "Cache-Control: no-cache" in stream.head
        hello = stream.next()
        assert hello.name == "hello" and abs(hello.data["now"] - time.time()) < 60
        assert hello.data["status"]["is_complete"] is True
        delays = []
        for comment in ("one", "two", "three", "four", "five"):
            site.observer().change_node(node, comment=comment)
            written = time.monotonic()
            event = stream.until(about("nodes", id=node, comment=comment))
            delays.append(event.at - written)
        assert min(delays) < 0.3, delays
        listed, = [entry for entry in json.loads(get(web, "/api/v1/nodes?limit=77")[2])["nodes"] if entry["id"] == node]
        ages = {"age": "since", "state_age": "state_since"}
        assert [ages.get(key, key) for key in listed] == list(event.data)
        assert {key: value for key, value in listed.items() if key not in ages} == {
            key: value for key, value in event.data.items() if key not in ages.values()}
        site.observer().zk.delete(f"/nodepool/nodes/{node}", recursive=True)
        assert stream.until(about("nodes", id=node, is_gone=True)).data == {"id": node, "is_gone": True}


# PAGE-1
def test_every_topic_is_streamed(site, web):
    tree = site.observer()
    with EventStream(web) as stream:
        request = tree.add_request(["small"])
        assert stream.until(about("requests", id=request, state="requested")).data["since"] > 0
        stream.until(about("requests", id=request, state="fulfilled"))
        stream.until(about("providers", name="fake-cloud"))
    with EventStream(web, "/api/v1/events?topics=images,builds,uploads,jobs,components,changes") as stream:
        tree.zk.create("/nodepool/images/deb/builds/b1",
                       b'{"state": "ready", "state_time": 1, "builder": "nb01", "formats": "raw"}', makepath=True)
        assert stream.until(about("changes", kind="image")).data["text"] == "Build deb-b1 is ready."
        assert stream.until(about("builds", id="b1")).data["image"] == "deb"
        tree.zk.create("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001",
                       b'{"state": "uploading", "state_time": 1}', makepath=True)
        stream.until(about("uploads", build="b1", provider="cloud"))
        tree.zk.create("/nodepool/jobs/0000000001", b'{"name": "unit", "hold_on_failure": 2}', makepath=True)
        assert stream.until(about("jobs", name="unit")).data["held"] == []
        tree.zk.delete("/nodepool/images/deb", recursive=True)
        stream.until(about("builds", id="deb/b1", is_gone=True))


# PAGE-2
def test_a_client_that_returns_catches_up(site, web):
    with EventStream(web, "/api/v1/events?topics=nodes") as stream:
        node = held(site)
        seen = stream.until(about("nodes", id=node))
    for comment in ("missed", "also missed"):
        site.observer().change_node(node, comment=comment)
        wait_for(lambda: comment in get(web, f"/api/v1/nodes?limit={4000 + len(comment)}")[2], "the launcher knows")
        with EventStream(web, "/api/v1/events?topics=nodes", Last_Event_ID=seen.id) as stream:
            stream.until(about("nodes", id=node, comment="missed"))
    with EventStream(web, f"/api/v1/events?topics=nodes&last={seen.id}") as stream:
        assert stream.next().name == "hello"
        assert stream.until(lambda event: True).data["comment"] == "missed"
        stream.until(about("nodes", comment="also missed"))


# PAGE-2
def test_what_is_not_known_any_more_is_loaded_again(web):
    for last in ("1-1", "nonsense", "%00", "-", "9" * 400):
        with EventStream(web, f"/api/v1/events?last={last}") as stream:
            assert [stream.next().name, stream.next().name] == ["hello", "reset"]


# PAGE-4
def test_a_client_that_does_not_read_harms_nobody(site, web):
    node = held(site, user_data="x" * 100_000)
    wait_for(lambda: node in get(web, "/api/v1/nodes")[2], "the node is listed")
    tree = site.observer()
    with EventStream(web, "/api/v1/events?topics=nodes", receive_buffer=4096) as deaf, \
            EventStream(web, "/api/v1/events?topics=nodes") as stream:
        for number in range(300):
            tree.change_node(node, comment=str(number))
            stream.until(about("nodes", id=node, comment=str(number)))
        names = set()
        deaf.until(lambda event: names.add(event.name) or event.name == "reset" or
                   event.data.get("comment") == "299")
        assert "reset" in names, "30 MB are not kept for it"


# PAGE-4
def test_streams_leave_files_for_others(site):
    port = free_port()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (160, limits[1]))  # the launcher inherits it
    try:
        site.launcher(web_config(site, port))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    streams = [EventStream(port) for _ in range(40)]  # strangers have a quarter of the files
    assert all("200 OK" in stream.head for stream in streams)
    refused = EventStream(port)
    assert " 503 " in refused.head
    assert get(port, "/ready")[0] == 200
    for stream in [*streams, refused]:
        stream.close()
    wait_for(lambda: get(port, "/api/v1/events?topics=none")[0] == 400, "the server answers")


# PAGE-2
def test_wrong_topics_are_refused(web):
    status, _, body = get(web, "/api/v1/events?topics=nodes,colours")
    assert status == 400 and "not colours" in body


def test_a_client_of_old_http_gets_no_chunks(site, web):
    with EventStream(web, version="1.0") as stream:
        assert not stream.is_chunked
        node = held(site)
        stream.until(about("nodes", id=node))


# PAGE-5
def test_changes_in_words(site, web):
    request = site.observer().add_request(["nonexistent"])
    site.observer().wait_request(request, "failed")

    def texts():
        changes = json.loads(get(web, "/api/v1/changes")[2])["changes"]
        assert [change["id"] for change in changes] == sorted((change["id"] for change in changes), reverse=True)
        return [change["text"] for change in changes]

    found = wait_for(lambda: [text for text in texts() if f"Request {request} failed" in text], "the failure is listed")
    assert "it has no label nonexistent" in found[0]
    assert f"Request {request} by tests asks for nonexistent." in texts()
    assert len(json.loads(get(web, "/api/v1/changes?limit=1")[2])["changes"]) == 1
    assert get(web, "/api/v1/changes?limit=x")[0] == 400


# PAGE-6
def test_samples(site, web):
    request = site.observer().add_request(["small"])
    site.observer().wait_request(request, "fulfilled")

    def sampled():
        samples = json.loads(get(web, "/api/v1/samples?since=600")[2])["hour"]
        return [sample for sample in samples if sample["waits"]["count"]]

    sample, = wait_for(sampled, "a sample with the request", 30)
    assert sample["nodes"]["ready"] == 1 and sample["requests_waiting"] == 0
    assert 0 < sample["waits"]["p50"] <= sample["waits"]["p99"] < 30
    assert sample["launches"] == {"fake-cloud": {"ready": 1, "failed": 0, "errors": 0}}
    assert get(web, "/api/v1/samples?since=x")[0] == 400


# PAGE-1
def test_the_stream_says_when_zookeeper_is_away(site):
    port = free_port()
    site.launcher(web_config_without_zookeeper(site, port), wait=False)
    first_answer(port, "/ready")
    with EventStream(port) as stream:
        assert stream.next().data["status"]["is_complete"] is False


def test_a_stop_ends_streams(tmp_path):
    running = Standalone(tmp_path).start()
    running.wait_ready()
    with EventStream(running.web_port) as stream:
        stream.next()
        begun = time.monotonic()
        running.process.stop()
        assert time.monotonic() - begun < 15
        with pytest.raises(AssertionError, match="ended"):
            stream.until(lambda event: False)
