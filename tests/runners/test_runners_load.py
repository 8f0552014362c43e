"""Many jobs at once through few nodes, while everything goes wrong that can: each job runs at most once, none is forgotten, and
nothing is left. NODEPOOL_TEST_GITHUB_JOBS=200 and NODEPOOL_TEST_GITHUB_NODES=50 make it as large as the specification says."""
import os
import random
import statistics
import time

from services import wait_for

JOBS = int(os.environ.get("NODEPOOL_TEST_GITHUB_JOBS", "24"))
NODES = int(os.environ.get("NODEPOOL_TEST_GITHUB_NODES", "6"))
IN_A_ROW = int(os.environ.get("NODEPOOL_TEST_GITHUB_IN_A_ROW", "8"))


def starts(job):
    return sum(what.startswith("started") for _, what in job["history"])


def are_over(github):
    return all(job["state"] == "completed" for job in github.jobs())


class Mishaps:
    """What happens to the service and to the daemon while jobs run, one thing a second."""

    def __init__(self, runners, github):
        self.runners, self.github, self.chance = runners, github, random.Random(1)
        self.set = github.world()["sets"][0]["id"]
        self.kills = 0

    def cancel(self):
        left = [job for job in self.github.jobs() if job["state"] != "completed"]
        for job in self.chance.sample(left, min(len(left), max(1, JOBS // 40))):
            self.github.post(f"/jobs/{job['id']}/cancel")

    def redeliver(self):
        self.github.post(f"/sets/{self.set}/redeliver", count=10)

    def lose_answers(self):
        call = self.chance.choice(["generatejitconfig", "acquirejobs", "DELETE .*messagequeue", "DELETE .*agents", "GET .*messagequeue"])
        self.github.post("/faults", match=call, times=3, kind=self.chance.choice(["drop", "drop-after", "html"]))

    def expire_tokens(self):
        self.github.post("/tokens/expire", kind=self.chance.choice(["queue", "admin", "installation"]))

    def take_the_session(self):
        self.github.post(f"/sets/{self.set}/occupy", owner="somebody", seconds=0)

    def give_the_session_back(self):
        self.github.post(f"/sets/{self.set}/release")

    def kill_the_daemon(self):
        if self.kills < 3:
            self.kills += 1
            self.runners.daemon.kill()
            self.runners.daemon = self.runners.runners(wait=False)

    def happen_in_turn(self):
        """Ends when the daemon has been killed three times, or all jobs are over. (In a thread, that thread's end would kill the daemons.)"""
        things = [self.cancel, self.redeliver, self.lose_answers, self.expire_tokens, self.take_the_session, self.give_the_session_back,
                  self.kill_the_daemon]
        for count in range(10 * JOBS):
            if self.kills >= 3 or are_over(self.github):
                break
            things[count % len(things)]()
            time.sleep(1)
        self.github.post(f"/sets/{self.set}/release")


# RUN-3, RUN-27, RUN-45, RUN-56, RUN-65
def test_a_storm_of_jobs_leaves_nothing(runners, github, record_property):
    runners.begin(slots=NODES, is_app=True)
    queued = time.monotonic()
    github.queue(JOBS, steps=["sleep 1"])
    mishaps = Mishaps(runners, github)
    mishaps.happen_in_turn()
    wait_for(lambda: are_over(github), "every job is over", 240 + 3 * JOBS)
    over = time.monotonic() - queued
    runners.await_clean(240)
    jobs = github.jobs()
    results = [job["result"] for job in jobs]
    figures = (f"{JOBS} jobs through {NODES} nodes: {results.count('succeeded')} succeeded, {results.count('canceled')} cancelled, "
               f"{mishaps.kills} kills, all over after {over:.0f} s, nothing left after {time.monotonic() - queued:.0f} s")
    record_property("figures", figures)
    print(figures)
    assert max(starts(job) for job in jobs) == 1 and {job["result"] for job in jobs} <= {"succeeded", "canceled"}
    assert all(starts(job) == 1 for job in jobs if job["result"] == "succeeded")


# RUN-2
def test_with_ready_nodes_a_job_begins_soon(runners, github, record_property):
    runners.begin(slots=NODES)
    wait_for(lambda: runners.node_states() == ["ready"] * NODES, "the nodes are ready", 60)
    taken = []
    for number in range(IN_A_ROW):
        github.queue()
        runners.await_results(number + 1, 60)
        times = {what.split()[0]: at for at, what in github.jobs()[-1]["history"]}
        taken.append(times["started"] - times["assigned"])
    taken.sort()
    p50, p99 = statistics.median(taken), taken[min(len(taken) - 1, len(taken) * 99 // 100)]
    record_property("figures", f"assigned to started, {len(taken)} jobs in a row: p50 {p50:.2f} s, p99 {p99:.2f} s")
    print(f"assigned to started, {len(taken)} jobs in a row: p50 {p50:.2f} s, p99 {p99:.2f} s")
    assert p50 < 15, "on a busy computer"
    runners.await_clean()


# RUN-47: what a job leaves behind does not keep the node.
def test_a_process_that_a_job_leaves_keeps_no_node(runners, github):
    runners.begin(slots=1)
    github.queue(steps=["setsid sleep 100 >/dev/null 2>&1 &"])
    runners.await_results(1)
    runners.await_clean(30)


# RUN-47, RUN-54
def test_a_job_that_outlives_its_cancellation(runners, github):
    runners.set_environment(FAKE_RUNNER_MODE="hang")
    runners.begin(slots=1, sets=[{"job-timeout": 3, "enforce-job-timeout": True}])
    job, = github.queue(steps=["true"])
    wait_for(lambda: github.states() == ["running"], "it runs", 30)
    github.post(f"/jobs/{job['id']}/cancel")
    wait_for(lambda: not runners.observer().children("/nodepool/leases") and runners.node_states() == ["ready"], "the node is given back", 60)
    assert not runners.worker_processes()
    github.post(f"/jobs/{job['id']}/lose")  # as the service does after some minutes; until then its runner counts as busy
    runners.await_clean(120)
