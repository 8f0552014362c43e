"""Jobs of Forgejo Actions on nodes: a runner for each job, by its handle."""
import shutil

import pytest
from services import wait_for

from github_site import Github, RunnersSite

HOSTILE = "build\x1b[2J\nERROR all is lost $(touch /tmp/x) \u202e"


class ForgejoSite(RunnersSite):
    """The same hosts, with Forgejo's runner beside GitHub's."""

    def __init__(self, folder, hosts, github):
        super().__init__(folder, hosts, github)
        shutil.copy(f"{github.env['COUNTERPART_RUNNER']}/forgejo-runner", self.home / "actions-runner")

    def begin_forgejo(self, wait=True, **settings):
        return self.begin(wait=wait, **({"service": "forgejo", "url": f"{self.github.env['FORGEJO_URL']}/octo"} | settings))

    def secret(self, is_app):
        return {"token": self.github.env["FORGEJO_TOKEN"]}

    def let_runners_wait(self):
        """They are online, and take no job."""
        (self.home / "actions-runner/forgejo-runner").write_text("#!/bin/sh\nexec sleep 600\n")

    def forgejo_runners(self):
        return self.github.world()["forgejo_runners"]

    def is_clean(self):
        tree = self.observer()
        return (not self.runs() and not tree.children("/nodepool/leases") and not tree.children("/nodepool/requests")
                and self.node_states() == ["ready"] * self.slots and not self.forgejo_runners())


class Forgejo(Github):
    """What the tests do with the service, as they do it with GitHub."""

    def __init__(self, github):
        self.state, self.commands, self.env = github.state, github.commands, github.env

    def queue(self, count=1, **job):
        return self.post("/jobs", service="forgejo", count=count, **({"labels": ["np-small"], "steps": ["echo hello"]} | job))["jobs"]

    def jobs(self):
        return self.get("/jobs")["forgejo"]


@pytest.fixture
def forgejo(github):
    return Forgejo(github)


@pytest.fixture
def site(tmp_path, shared_zookeeper, forgejo):
    made = ForgejoSite(tmp_path, shared_zookeeper.hosts, forgejo)
    yield made
    made.stop()


def starts(job):
    return sum(what.startswith("started") for _, what in job["history"])


# RUN-90
@pytest.mark.parametrize("is_null", [True, False])
def test_a_job_runs_on_a_node_that_is_given_back(site, forgejo, is_null):
    forgejo.post("/settings", forgejo_null=is_null)
    site.begin_forgejo(url=f"{forgejo.env['FORGEJO_URL']}/octo/app")
    forgejo.queue(name=HOSTILE, steps=["sleep 2; echo hello"])
    wait_for(lambda: any("octo/app" in str(node.get("user_data")) for node in site.observer().nodes().values()), "the node names its job", 30)
    site.await_results(1, result="success")
    site.await_clean()
    assert forgejo.jobs()[0]["output"].strip() == "hello"
    assert "\x1b" not in site.daemon.output() and "\nERROR" not in site.daemon.output()
    assert forgejo.env["FORGEJO_TOKEN"] not in site.daemon.output()


# RUN-91, RUN-3
def test_many_jobs_run_once_each(site, forgejo):
    site.begin_forgejo()
    forgejo.queue(12, steps=["sleep 0.5"])
    site.await_results(12, 120, result="success")
    site.await_clean()
    assert [starts(job) for job in forgejo.jobs()] == [1] * 12


# RUN-91, RUN-56
@pytest.mark.parametrize("after", [1.0, 2.5, 4.0])
def test_a_daemon_that_is_killed_on_the_way(site, forgejo, after):
    site.begin_forgejo()
    forgejo.queue(4, steps=["sleep 2"])
    with pytest.raises(AssertionError):
        wait_for(lambda: False, "some time", after)
    site.daemon.kill()
    site.daemon = site.runners()
    site.await_results(4, 120, result="success")
    site.await_clean(120)
    assert [starts(job) for job in forgejo.jobs()] == [1] * 4


# RUN-92
def test_a_job_that_is_cancelled_before_its_runner_has_it(site, forgejo):
    site.let_runners_wait()
    site.begin_forgejo()
    job, = forgejo.queue()
    wait_for(lambda: any(run["state"] == "online" for run in site.runs().values()), "its runner waits", 30)
    forgejo.post(f"/jobs/{job['id']}/cancel")
    site.await_clean(120)


# RUN-93
def test_a_server_that_is_too_old_is_refused(site, forgejo):
    forgejo.post("/faults", match="GET /api/v1/version", times=50, kind="status", status=200, body='{"version": "14.0.1+gitea-1.22.0"}')
    site.begin_forgejo(wait=False)
    wait_for(lambda: "Forgejo 15 or newer is needed" in (site.sets().get("octo/np-small") or {}).get("fault", ""), "the version is named", 30)


# RUN-65
@pytest.mark.parametrize("fault", [{"kind": "status", "status": 503}, {"kind": "drop-after"}, {"kind": "html"}])
def test_faults_of_calls(site, forgejo, fault):
    site.begin_forgejo()
    for call in ("POST .*runners", "GET .*jobs", "DELETE .*runners"):
        forgejo.post("/faults", match=call, times=2, **fault)
    forgejo.queue(2)
    site.await_results(2, 120, result="success")
    assert [starts(job) for job in forgejo.jobs()] == [1] * 2
