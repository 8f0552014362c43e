"""Where tokens come from, and what happens when they end."""
import json
import shutil

import pytest
from services import wait_for


# GCE-51
@pytest.mark.parametrize("file", ["nodepool.json", "user.json", "workload.json", None])
def test_each_kind_of_credentials(gce_site, file):
    project = gce_site.project
    path = str(project.credentials(file)) if file else None
    env = project.environment(GOOGLE_APPLICATION_CREDENTIALS=path, HOME="/nonexistent")
    launcher = gce_site.launcher(env=env)
    gce_site.node(gce_site.tree())
    assert "ya29." not in launcher.output()


# GCE-52
def test_tokens_end(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    launcher = gce_site.launcher()
    gce_site.node(tree)
    project.control("/credentials", {"expire": True})
    gce_site.node(tree)
    assert "Launch attempt" not in launcher.output()


# GCE-53
def test_a_wrong_key_until_the_file_changes(gce_site, tmp_path):
    project, tree = gce_site.project, gce_site.tree()
    key = json.loads(project.credentials("nodepool.json").read_text())
    other = json.loads(project.credentials("other.json").read_text())
    file = tmp_path / "key.json"
    file.write_text(json.dumps({**key, "private_key": other["private_key"], "private_key_id": ""}))
    launcher = gce_site.launcher(env=project.environment(GOOGLE_APPLICATION_CREDENTIALS=str(file)), wait=False)
    wait_for(lambda: "Invalid JWT Signature; check the credentials" in launcher.output(), "the log says why", 60)
    assert "PRIVATE KEY" not in launcher.output()
    shutil.copy(project.credentials("nodepool.json"), file)
    tree.fulfil_timeout = 120
    gce_site.node(tree)


# GCE-54
def test_a_clock_that_is_wrong(gce_site):
    gce_site.project.control("/clock", {"offset_s": -700})
    launcher = gce_site.launcher()
    gce_site.node(gce_site.tree())
    assert "ahead of that of Google" in launcher.output()


# GCE-55
def test_a_right_that_is_missing(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    project.fault(service="compute", error={"code": "forbidden", "message": "Required permission", "status": 403}, count=1000)
    launcher = gce_site.launcher(wait=False)
    wait_for(lambda: "give the account the role of docs/drivers/gce.md" in launcher.output(), "the log says why", 60)
    project.control("/faults", method="DELETE")
    gce_site.node(tree)


# GCE-1
def test_validation_that_asks_google(gce_site):
    good = gce_site.validate_online()
    assert good.returncode == 0, good.stdout + good.stderr
    for settings, words in (({"image": {"image-family": "debian-99"}}, "no image of family debian-99"),
                            ({"label": {"instance-type": "e9-nothing"}}, "e9-nothing")):
        bad = gce_site.validate_online(**settings)
        assert bad.returncode != 0 and words in bad.stdout + bad.stderr
