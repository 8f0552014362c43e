"""The files of examples/config and examples/monitoring."""
import json
import re
import shutil
import subprocess

import pytest
import yaml

from nodepool_helpers import BIN, ROOT

CONFIG = ROOT / "examples/config"
MONITORING = ROOT / "examples/monitoring"


@pytest.mark.parametrize("path", [path for path in sorted(CONFIG.glob("*.yaml")) if path.name != "clouds.yaml"],
                         ids=lambda path: path.name)
def test_a_configuration_is_valid(path):
    done = subprocess.run([BIN / "nodepool", "-c", path, "config-validate"], capture_output=True, text=True,
                          env={"OS_CLIENT_CONFIG_FILE": str(CONFIG / "clouds.yaml")}, timeout=60)
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if " WARNING " in line]
    assert [line for line in warnings if "/etc/nodepool/tls/" not in line] == [], "only certificates are missing"


def test_every_example_is_named():
    page = (ROOT / "docs/operator/configure.md").read_text() + (ROOT / "docs/operator/monitor.md").read_text()
    for path in [*CONFIG.glob("*.yaml"), MONITORING / "alerts.yaml", MONITORING / "dashboard.json",
                 MONITORING / "statsd-exporter.yaml"]:
        assert f"](../../{path.relative_to(ROOT)})" in page, path


# --- What is shown and watched exists -------------------------------------------------------

def exported() -> dict[str, set[str]]:
    """The series that Prometheus gets, with their labels, by the pages that are made from the declarations."""
    series = {}
    for page in ("metrics.md", "builder-metrics.md"):
        row = re.compile(r"^\| `[^|]*` \| (\w+) \| `(\w+)(?:\{([^}]*)\})?` \|", re.M)
        for kind, name, labels in row.findall((ROOT / "build/docs/reference" / page).read_text()):
            found = set(labels.replace(" ", "").split(",")) - {""}
            names = [(name + end, {"le"} if end == "_bucket" else set()) for end in ("_bucket", "_sum", "_count")]
            for full, more in names if kind == "timing" else [(name, set())]:
                series[full] = found | more
    assert len(series) > 30
    return series


FROM_PROMETHEUS = {"instance", "job"}


def check(expression: str, series: dict[str, set[str]]):
    used = set()
    for name, matchers in re.findall(r"\b(nodepool_\w+)(?:\{([^}]*)\})?", expression):
        assert name in series, f"{name} in {expression} is no metric of ours"
        used |= series[name]
        for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", matchers):
            assert label in series[name] | FROM_PROMETHEUS, f"{name} has no label {label}: {expression}"
    for labels in re.findall(r"\bby\s*\(([^)]*)\)", expression):
        for label in labels.replace(" ", "").split(","):
            assert label in used | FROM_PROMETHEUS, f"nothing has the label {label}: {expression}"
    assert expression.count("(") == expression.count(")")
    return used


def test_alerts_ask_for_metrics_that_we_have():
    rules = [rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
    assert len(rules) >= 8
    for rule in rules:
        used = check(rule["expr"], exported())
        for text in rule["annotations"].values():
            for label in re.findall(r"\$labels\.(\w+)", text):
                assert label in used | FROM_PROMETHEUS, (rule["alert"], label)


def test_the_dashboard_shows_metrics_that_we_have():
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len(panels) >= 10 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels:
        for target in panel["targets"]:
            used = check(target["expr"], exported())
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert label in used, (panel["title"], label)
    variable, = [entry for entry in dashboard["templating"]["list"] if entry["type"] == "query"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()
    assert label in exported()[name]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (package prometheus) is missing")
def test_alerts_go_off():
    done = subprocess.run(["promtool", "test", "rules", "alerts_test.yaml"], cwd=MONITORING, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
