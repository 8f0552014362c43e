"""GitHub without scale sets: jobs that webhooks and lists name, and runners that the REST API registers."""
import hashlib
import hmac
import http.client
import json
import signal

import pytest
from services import free_port, wait_for

SECRET = "the-hooks-secret"
REPOSITORIES = ["octo/app", "octo/lib", "octo/open"]


@pytest.fixture
def hooked(runners, github):
    """Begins with webhooks that GitHub sends to the launcher."""

    class Hooked:
        port = free_port()
        site = runners

        def begin(self, is_muted=False, **service):
            runners.settings["webapp"] = {"listen_address": "127.0.0.1", "port": self.port}
            runners.path = runners.write_config(secrets={"webhook-secret": ["the-former-secret", SECRET]},
                                                **({"mode": "webhook", "repos": REPOSITORIES, "allow-forks": True} | service))
            runners.launcher(runners.path, options=["-s", runners.secure])
            github.post("/hooks", url=f"http://127.0.0.1:{self.port}/api/v1/runners/hooks/octo", secret=SECRET, muted=is_muted)
            runners.daemon = runners.runners()

        def deliver(self, body: bytes, secret=SECRET, **headers):
            digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            link.request("POST", "/api/v1/runners/hooks/octo", body,
                         {"X-GitHub-Event": "workflow_job", "X-Hub-Signature-256": f"sha256={digest}"} | headers)
            return link.getresponse().status

        def deliveries(self):
            return github.get("/hooks/deliveries")

    return Hooked()


def starts(job):
    return sum(what.startswith("started") for _, what in job["history"])


def of_fork(github, job, head):
    """What GitHub says of the run's code."""
    github.post("/faults", match=f"GET .*/actions/runs/{job['run']}$", times=100, kind="status", status=200,
                body=json.dumps({"id": job["run"], "head_repository": {"full_name": head}}))


# RUN-80, RUN-81, RUN-83
def test_deliveries_start_jobs(hooked, github):
    hooked.begin()
    begun = len(github.calls())
    github.queue(3)
    github.queue(1, labels=["np-small", "gpu"])
    wait_for(lambda: sorted(github.states()) == ["queued"] + ["succeeded"] * 3, "those that fit are over", 60)
    github.post("/hooks/redeliver")
    wait_for(lambda: all(each["status"] in (200, 202) for each in hooked.deliveries()), "every delivery is answered")
    wait_for(lambda: not hooked.site.runs() and not github.world()["runners"], "no run is left", 60)
    assert max(starts(job) for job in github.jobs()) == 1
    paths = [path for _, _, path, _ in github.calls(begun)]
    assert not any("runnerscalesets" in path for path in paths)
    assert sum("generate-jitconfig" in path for path in paths) == 3


# RUN-82
def test_lost_deliveries_are_found(hooked, github):
    hooked.begin(is_muted=True, repos=["octo/app"])
    github.queue(1)
    hooked.site.daemon.kill()
    hooked.site.daemon = hooked.site.runners()
    hooked.site.await_results(1, 60)
    hooked.site.await_clean(240)  # nothing says that it is over but the next list


# RUN-56, RUN-81: what was delivered while no daemon was there.
def test_deliveries_outlive_daemons(hooked, github):
    hooked.begin(repos=["octo/app"])
    hooked.site.daemon.send(signal.SIGINT)
    wait_for(lambda: not hooked.site.daemon.is_running(), "the daemon ends")
    github.queue(2)
    wait_for(lambda: all(each["status"] == 202 for each in hooked.deliveries()), "they are taken")
    hooked.site.daemon = hooked.site.runners()
    hooked.site.await_results(2, 60)
    hooked.site.await_clean()
    assert max(starts(job) for job in github.jobs()) == 1


# RUN-80
def test_forged_deliveries_start_nothing(hooked, github):
    hooked.begin(repos=["octo/app"])
    event = json.dumps({"action": "queued", "repository": {"full_name": "octo/app"},
                        "workflow_job": {"id": 4711, "run_id": 1, "status": "queued", "labels": ["np-small"], "name": "x\x1b[2J"}}).encode()
    assert hooked.deliver(event, secret="a-wrong-secret") == 401
    assert hooked.deliver(event, secret="a-wrong-secret") == 429
    assert hooked.deliver(event + b" ", **{"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), event, hashlib.sha256).hexdigest()}) == 429
    assert not hooked.site.observer().children("/nodepool/runners/jobs/octo")
    github.queue(1)
    hooked.site.await_results(1)
    hooked.site.await_clean()


# RUN-84, RUN-87
def test_public_repositories_and_forks_are_left_alone(hooked, github):
    hooked.begin(**{"allow-forks": False})
    github.post("/faults", match="GET .*/actions/runs/\\d+$", times=1000, kind="status", status=200,
                body=json.dumps({"id": 1, "head_repository": {"full_name": "mallory/fork"}}))
    github.post("/faults", match="GET .*/repos/octo/open$", times=1000, kind="status", status=200, body=json.dumps({"private": False}))
    github.queue(2, run=900)
    wait_for(lambda: "leaves jobs of forks of octo/app alone" in hooked.site.daemon.output(), "the forks are left alone")
    github.queue(1, repo="octo/open")
    wait_for(lambda: "leaves the jobs of octo/open alone, which is public" in hooked.site.daemon.output(), "the public one is, too")
    assert sum(path.endswith("/actions/runs/900") for _, _, path, _ in github.calls()) == 1
    assert not hooked.site.runs() and github.states() == ["queued"] * 3


# RUN-85, RUN-87
def test_polls_find_jobs(runners, github):
    runners.begin(mode="poll", repos=["octo/app", "octo/lib"])
    github.queue(2, steps=["sleep 1"])
    github.queue(1, repo="octo/lib")
    github.queue(1, fork=True)
    wait_for(lambda: sorted(github.states()) == ["queued"] + ["succeeded"] * 3, "all but the fork's are over", 120)
    wait_for(lambda: not runners.runs() and not github.world()["runners"], "no run is left", 90)
    assert max(starts(job) for job in github.jobs()) == 1


# RUN-86: what GitHub refuses is said, with what to do.
def test_refused_registrations_are_explained(runners, github):
    github.post("/faults", match="generate-jitconfig", times=1000, kind="status", status=422, body=json.dumps({"message": "Validation Failed"}))
    runners.begin(mode="poll", repos=["octo/app"])
    github.queue(1)
    wait_for(lambda: "correct the labels of the set" in runners.daemon.output(), "the refusal is explained", 60)
    assert "Validation Failed" in runners.daemon.output()


# RUN-70
def test_what_is_missing_is_named(runners):
    path = runners.write_config(mode="webhook", repos=["octo/app"])
    done = runners.tool("-s", runners.secure, "config-validate", config=path)
    assert done.returncode != 0 and "webhook-secret" in done.stdout + done.stderr
