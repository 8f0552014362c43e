"""examples/monitoring/statsd-exporter.yaml (operations.md 10), read as statsd_exporter reads it."""
import re

import pytest
import yaml

from nodepool_helpers import ROOT

RULES = yaml.safe_load((ROOT / "examples/monitoring/statsd-exporter.yaml").read_text())["mappings"]
TYPES = {"counter": "counter", "gauge": "gauge", "timing": "observer"}


def expression(rule) -> str:
    """What a rule matches; a `*` of a glob is one level."""
    if rule.get("match_type") == "regex":
        return rule["match"]
    return "^" + re.escape(rule["match"]).replace(r"\*", "([^.]*)") + "$"


def mapped(key: str, kind: str):
    """Name and labels in Prometheus; None for what is dropped."""
    for rule in RULES:
        match = re.search(expression(rule), key)
        if not match or rule.get("match_metric_type", TYPES[kind]) != TYPES[kind]:
            continue
        if rule.get("action") == "drop":
            return None
        fill = lambda text: re.sub(r"\$(\d)", lambda number: match[int(number[1])], text)
        return fill(rule["name"]), {label: fill(value) for label, value in rule.get("labels", {}).items()}


# The rules that have always been there.
@pytest.mark.parametrize("key, kind, name, labels", [
    ("nodepool.provider.p.max_servers", "gauge", "nodepool_provider_max_servers", {"provider": "p"}),
    ("nodepool.provider.p.request_handler", "timing", "nodepool_provider_request_handler", {"provider": "p"}),
    ("nodepool.provider.p.nodes.ready", "gauge", "nodepool_nodes_by_provider", {"provider": "p", "state": "ready"}),
    ("nodepool.label.l.nodes.ready", "gauge", "nodepool_nodes_by_label", {"label": "l", "state": "ready"}),
    ("nodepool.nodes.ready", "gauge", "nodepool_nodes", {"state": "ready"}),
    ("nodepool.task.p.t", "counter", "nodepool_task", {"provider": "p", "task": "t"}),
    ("nodepool.task.p.t", "timing", "nodepool_task_timer", {"provider": "p", "task": "t"}),
    ("nodepool.launch.provider.p.az1.error.quota", "counter", "nodepool_launch_by_provider_az",
     {"provider": "p", "az": "az1", "result": "error.quota"}),
    ("nodepool.launch.provider.p.az1.ready", "timing", "nodepool_launch_by_provider_az_timer",
     {"provider": "p", "az": "az1", "result": "ready"}),
    ("nodepool.launch.provider.p.error.quota", "counter", "nodepool_launch_by_provider",
     {"provider": "p", "result": "error.quota"}),
    ("nodepool.launch.provider.p.ready", "timing", "nodepool_launch_by_provider_timer",
     {"provider": "p", "result": "ready"}),
    ("nodepool.launch.requestor.r.ready", "counter", "nodepool_launch_by_requestor",
     {"requestor": "r", "result": "ready"}),
    ("nodepool.launch.requestor.r.error.quota", "timing", "nodepool_launch_by_requestor_timer",
     {"requestor": "r", "result": "error.quota"}),
    ("nodepool.launch.error.quota", "counter", "nodepool_launch", {"result": "error.quota"}),
    ("nodepool.launch.ready", "timing", "nodepool_launch_timer", {"result": "ready"}),
    ("nodepool.image_update.i.p", "counter", "nodepool_image_update", {"image": "i", "provider": "p"}),
    ("nodepool.image_update.i.p", "timing", "nodepool_image_update_timer", {"image": "i", "provider": "p"}),
    ("nodepool.dib_image_build.i.status.rc", "gauge", "nodepool_dib_image_build_result_code",
     {"image": "i", "ext": "status"}),
    ("nodepool.dib_image_build.i.qcow2.size", "gauge", "nodepool_dib_image_build_size", {"image": "i", "ext": "qcow2"}),
    ("nodepool.dib_image_build.i.status.duration", "timing", "nodepool_dib_image_build_duration",
     {"image": "i", "ext": "status"}),
])
def test_keys_have_their_old_names(key, kind, name, labels):
    assert mapped(key, kind) == (name, labels)


def test_launches_are_a_histogram():
    rule, = [rule for rule in RULES if rule["name"] == "nodepool_launch_by_provider_timer"]
    assert rule["observer_type"] == "histogram"
    assert rule["histogram_options"]["buckets"] == [20, 30, 40, 50, 60, 70, 80, 90, 120, 150, 180, 300, 600, 900]


def test_anything_else_is_dropped():
    for key in ("nodepool.something.else", "other.key", "nodepool.launch.image.i.ready", "nodepool.launch.nonsense"):
        assert mapped(key, "counter") is None


# --- Ours -----------------------------------------------------------------------------------

OLD_NAMES = {"nodepool.dib_image_build.<image>.<format>.size", "nodepool.dib_image_build.<image>.status.duration",
             "nodepool.dib_image_build.<image>.status.rc", "nodepool.image_update.<image>.<provider>"}
VALUES = {"fqdn": "nb01.example.net", "queue": "node_cache.event_queue"}


def declared():
    """(key, kind, name in Prometheus) of every metric, by the pages that are made from the declarations."""
    for page in ("metrics.md", "builder-metrics.md", "runners-metrics.md"):
        rows = re.findall(r"^\| `([^`]*)` \| (\w+) \| (?:`(\w+)[^|]*)?\|", (ROOT / "build/docs/reference" / page).read_text(), re.M)
        assert len(rows) > 10
        yield from rows


def test_every_metric_of_ours_is_shown():
    for key, kind, name in declared():
        names = re.findall("<(.*?)>", key)
        for result in ("ready", "error.quota") if key.startswith("nodepool.launch.") else ("200",):
            values = {label: {**VALUES, "result": result}.get(label, f"some-{label}") for label in names}
            sent = re.sub("<(.*?)>", lambda label: values[label[1]], key)
            if not name:  # a second spelling of another metric
                assert mapped(sent.replace("some-kind", "INSTANCEs"), kind) is None, sent
            elif key in OLD_NAMES:
                assert mapped(sent, kind) is not None, sent
            else:
                assert mapped(sent, kind) == (name, values), sent
