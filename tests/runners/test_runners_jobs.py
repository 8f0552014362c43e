"""Jobs of GitHub Actions on nodes, from the queue to the node's return."""
import re
import subprocess

import pytest
from services import wait_for

HOSTILE = "build\x1b[2J\nERROR all is lost $(touch /tmp/x) \u202e"


# RUN-1, RUN-7, RUN-13, RUN-16, RUN-20
def test_a_job_runs_on_a_node_that_is_given_back(runners, github):
    runners.begin()
    github.queue()
    runners.await_results(1)
    runners.await_clean()
    job = github.jobs()[0]
    assert job["output"].strip() == "hello"
    runner = job["ran_on"]["name"]
    assert f"runner {runner} has job" in runners.daemon.output()


# RUN-5, RUN-6
def test_an_app_proves_who_it_is(runners, github):
    runners.begin(is_app=True)
    github.queue()
    runners.await_results(1)
    assert sum("access_tokens" in path for _, _, path, _ in github.calls()) == 1


# RUN-3, RUN-4
@pytest.mark.parametrize("flow", ["acquire", "direct"])
def test_many_jobs_run_once_each(runners, github, flow):
    github.post("/settings", flow=flow)
    runners.begin()
    github.queue(12, steps=["echo x"])
    runners.await_results(12, 120)
    runners.await_clean()
    assert all(sum(what.startswith("started") for _, what in job["history"]) == 1 for job in github.jobs())


# RUN-73: foreign text is escaped.
def test_hostile_names_are_shown_without_harm(runners, github):
    daemon = runners.begin()
    github.queue(name=HOSTILE)
    runners.await_results(1)
    runners.await_clean()
    log = daemon.log.read_bytes().decode()
    assert "\\x1b[2J" in log
    assert not re.search(r"\x1b|\u202e|^ERROR all", log, re.M)


# RUN-50: a job prints what it sees of its own computer; nothing of ours is secret there.
def test_no_secret_is_in_logs_records_and_command_lines(runners, github):
    runners.begin(is_app=True)
    github.queue(steps=["sleep 3"])
    wait_for(lambda: "running" in github.states(), "the job runs")
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    tree = runners.observer()
    texts = [lines, *(str(record) for record in [*runners.runs().values(), *runners.sets().values(), *tree.nodes().values()])]
    runners.await_results(1)
    runners.await_clean()
    texts.append(runners.daemon.output())
    key = open(github.env["GITHUB_APP_KEY"]).read().splitlines()[1]
    for text in texts:
        assert not re.search(r"ghs_\w|AuthorizationUrl|eyJ[A-Za-z0-9]{20}", text)
        assert key not in text


# RUN-32, RUN-33
def test_a_cancelled_job_leaves_nothing(runners, github):
    runners.begin(slots=1)
    github.queue(2, steps=["sleep 60"])
    wait_for(lambda: sorted(github.states()) == ["acquired", "running"], "one job runs")
    running = next(job for job in github.jobs() if job["state"] == "running")
    other = next(job for job in github.jobs() if job["state"] != "running")
    github.post(f"/jobs/{other['id']}/cancel")
    github.post(f"/jobs/{running['id']}/cancel")
    runners.await_results(2, result="canceled")
    runners.await_clean(100)
