"""Daemons that die, and faults of the service; every job runs once, and nothing is left."""
import signal
import time

import pytest
from services import wait_for


# RUN-49, RUN-56, RUN-22
def test_a_killed_daemon_disturbs_no_job(runners, github):
    runners.begin()
    github.queue(2, steps=["sleep 8; echo done"])
    wait_for(lambda: github.states() == ["running"] * 2, "the jobs run")
    runners.daemon.kill()
    github.queue(1)
    runners.daemon = runners.runners()
    runners.await_results(3, 90)
    runners.await_clean(90)
    assert all(sum(what.startswith("started") for _, what in job["history"]) == 1 for job in github.jobs())


# RUN-56: at any moment of the way from the message to the job.
@pytest.mark.parametrize("after", [0.05, 0.3, 0.6, 1.0, 1.5])
def test_a_daemon_that_is_killed_on_the_way(runners, github, after):
    runners.begin()
    github.queue(4, steps=["sleep 1"])
    time.sleep(after)
    runners.daemon.kill()
    runners.daemon = runners.runners()
    runners.await_results(4, 120)
    runners.await_clean(120)
    assert all(sum(what.startswith("started") for _, what in job["history"]) == 1 for job in github.jobs())


# RUN-23
def test_a_clean_stop_closes_the_session(runners, github):
    daemon = runners.begin()
    assert github.world()["sets"][0]["session"]
    daemon.send(signal.SIGINT)
    wait_for(lambda: not daemon.is_running(), "the daemon ends")
    assert daemon.child.returncode == 0
    world = github.world()["sets"]
    assert len(world) == 1 and not world[0]["session"]


# RUN-59
def test_two_daemons_share_the_work(runners, github):
    runners.begin()
    runners.runners("second", wait=False)
    github.queue(2)
    runners.await_results(2)
    runners.daemon.kill()
    killed = time.monotonic()
    github.queue(2)
    runners.await_results(4)
    assert time.monotonic() - killed < 60
    runners.await_clean()


# RUN-9, RUN-24
def test_tokens_that_end_early(runners, github):
    runners.begin()
    for kind in ("queue", "admin", "installation"):
        github.post("/tokens/expire", kind=kind)
    github.queue(3)
    runners.await_results(3)
    runners.await_clean()


# RUN-65
@pytest.mark.parametrize("fault", [{"kind": "status", "status": 503}, {"kind": "drop"}, {"kind": "drop-after"},
                                   {"kind": "html"}])
@pytest.mark.parametrize("call", ["generatejitconfig", "acquirejobs", "DELETE .*messagequeue", "DELETE .*agents"])
def test_faults_of_single_calls(runners, github, call, fault):
    runners.begin()
    github.post("/faults", match=call, times=2, **fault)
    github.queue(2)
    runners.await_results(2, 120)
    runners.await_clean(180)
    assert all(sum(what.startswith("started") for _, what in job["history"]) == 1 for job in github.jobs())


# RUN-44
def test_a_refused_version_stops_the_set(runners, github):
    github.post("/settings", min_runner_version="3.0.0")
    runners.begin()
    github.queue()
    wait_for(lambda: "version 2.340.0" in (runners.sets()["octo/np-small"].get("fault") or "") or
             "refuses the version" in (runners.sets()["octo/np-small"].get("fault") or ""), "the version is named")
    wait_for(lambda: not runners.runs(), "the run has ended")
    time.sleep(3)
    assert not runners.runs()


# RUN-43
def test_a_runner_that_is_never_online(runners, github):
    runners.set_environment(FAKE_RUNNER_MODE="ignore")
    runners.begin(sets=[{"start-timeout": 5}])
    github.queue()
    wait_for(lambda: "not online in time" in runners.daemon.output(), "the runner is given up")
    (runners.home / "actions-runner" / "run.sh").write_text('#!/bin/sh\nexec "$(dirname "$0")/run-original.sh" "$@"\n')
    runners.await_results(1, 90)
    runners.await_clean()


# RUN-21
def test_a_foreign_session_is_named(runners, github):
    runners.begin()
    runners.daemon.send(signal.SIGINT)
    wait_for(lambda: not runners.daemon.is_running(), "the daemon ends")
    number = github.world()["sets"][0]["id"]
    github.post(f"/sets/{number}/occupy", owner="somebody", seconds=600)
    runners.daemon = runners.runners(wait=False)
    wait_for(lambda: "owner somebody" in runners.daemon.output(), "the owner is named")
    github.post(f"/sets/{number}/release")
    github.queue()
    runners.await_results(1)


# RUN-14, RUN-71, RUN-72
def test_a_set_that_is_removed_is_deleted(runners, github):
    runners.begin(sets=[{}, {"name": "np-large"}])
    wait_for(lambda: runners.is_listening("octo/np-large"), "both sets are served")
    runners.write_config()
    runners.daemon.send(signal.SIGHUP)
    wait_for(lambda: [each["name"] for each in github.world()["sets"]] == ["np-small"], "the set is deleted", 60)
    github.queue()
    runners.await_results(1)
