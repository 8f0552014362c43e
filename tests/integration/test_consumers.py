"""The files of examples/consumers, with real launchers, real SSH servers, and the real tools where Debian has them."""
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading

import pytest
from exec_nodes import Nodes, host
from nodepool_helpers import ROOT
from services import Process, Sshd, files_of_processes, wait_for

CONSUMERS = ROOT / "examples/consumers"
TOOL = CONSUMERS / "shell/nodepool-lease"
SCRIPTS = [path for path in sorted(CONSUMERS.rglob("*"))
           if path.is_file() and path.read_bytes().startswith(b"#!/bin/sh")]


@pytest.fixture
def nodes(site, sshd):
    nodes = Nodes(site, sshd, host(sshd, "small"), is_over_http=True)
    yield nodes
    wait_for(lambda: not left_over(site.folder), "no process is left", 30)


def left_over(folder: pathlib.Path) -> list[str]:
    """Command lines of the examples' own processes that work for this test."""
    found = []
    for path in files_of_processes("cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "nodepool-lease" in line and str(folder) in line:
            found.append(line)
    return found


def environment(nodes, **more):
    return {**os.environ, "NODEPOOL_SERVER": nodes.url, "NODEPOOL_TOKEN_FILE": str(nodes.token_file), "NODEPOOL_LEASE": "30",
            "NODEPOOL_IDENTITY": str(nodes.key), "TMPDIR": str(nodes.site.folder), **more}


def run(nodes, *words, timeout=90, env=None, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout,
                          env=environment(nodes, **(env or {})), **options)


def leases(nodes):
    return nodes.tree.children("/nodepool/leases")


# CONS-1
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(CONSUMERS)))
def test_scripts_are_clean(script):
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


# CONS-1
def test_every_example_has_a_page_and_is_named():
    page = (ROOT / "docs/consumers.md").read_text()
    for folder in sorted(path for path in CONSUMERS.iterdir() if path.is_dir()):
        assert (folder / "README.md").exists()
        assert f"](../examples/consumers/{folder.name}" in page


# --- shell ----------------------------------------------------------------------------------

# CONS-2
def test_a_command_between_get_and_return(nodes):
    done = run(nodes, TOOL, "run", "small", "cat; echo $((40 + 2)); exit 9", input="said\n")
    assert (done.returncode, done.stdout) == (9, "said\n42\n"), done.stderr
    nodes.wait_ready()
    assert list(nodes.site.folder.glob("nodepool-*")) == []


# CONS-2
def test_the_lease_is_renewed_until_it_is_given_back(nodes, tmp_path):
    folder = tmp_path / "lease"
    done = run(nodes, TOOL, "get", folder, "small")
    assert done.returncode == 0, done.stderr
    keeper = Process([TOOL, "keep", folder], tmp_path / "keep.log", environment(nodes))
    nodes.site.started.append(keeper)
    lease, = leases(nodes)
    first = nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"]
    wait_for(lambda: nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"] > first, "it is renewed", 30)
    assert run(nodes, TOOL, "ssh", folder, "echo there").stdout == "there\n"
    again = [run(nodes, TOOL, "return", folder).returncode for _ in range(2)]
    assert again == [0, 0] and not folder.exists()
    keeper.wait(10)
    nodes.wait_ready()


# CONS-2
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_gives_the_nodes_back(nodes, tmp_path, number):
    begun = tmp_path / "begun"
    # A shell ignores SIGINT in what it starts in the background; here the whole tool is in the foreground.
    running = Process([TOOL, "run", "small", f"touch {begun}; sleep 1000"], tmp_path / "run.log", environment(nodes))
    nodes.site.started.append(running)
    wait_for(begun.exists, "the command has begun")
    running.send(number)
    assert running.wait(30) == 128 + number
    nodes.wait_ready()


# CONS-2
def test_a_keeper_that_has_hardly_begun_ends_alone(tmp_path):
    folder, tools = tmp_path / "lease", tmp_path / "tools"
    folder.mkdir()
    (folder / "id").write_text("1\n")
    tools.mkdir()
    (tools / "cat").write_text('#!/bin/sh\nread -r keeper <"${1%/*}/keeper"\nkill -TERM "$keeper"\nexec /bin/cat "$@"\n')
    (tools / "cat").chmod(0o755)
    other = subprocess.Popen(["sleep", "1000"], process_group=0)
    try:
        keeper = subprocess.Popen([TOOL, "keep", folder], process_group=other.pid, env={
            **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NODEPOOL_SERVER": "http://127.0.0.1:1", "NODEPOOL_TOKEN": "t"})
        assert keeper.wait(60) == 0
        assert other.poll() is None, "who shares its process group goes on"
    finally:
        other.kill()
        other.wait()


# CONS-2
def test_a_signal_while_it_waits_withdraws_the_request(nodes, tmp_path):
    assert run(nodes, TOOL, "get", tmp_path / "first", "small").returncode == 0
    waiting = Process([TOOL, "get", tmp_path / "second", "small"], tmp_path / "get.log", environment(nodes))
    nodes.site.started.append(waiting)
    wait_for(lambda: "waiting; metal main has no free node" in waiting.output(), "it says why it waits", 60)
    waiting.send(signal.SIGTERM)
    assert waiting.wait(60) == 143
    assert len(leases(nodes)) == 1 and not (tmp_path / "second").exists()
    assert run(nodes, TOOL, "return", tmp_path / "first").returncode == 0
    nodes.wait_ready()


# CONS-2
def test_refusals_leave_nothing(nodes, tmp_path):
    unknown = run(nodes, TOOL, "get", tmp_path / "lease", "no-such-label")
    assert unknown.returncode == 1 and "no-such-label" in unknown.stderr
    nodes.token_file.write_text("ci.0123456789abcdef\n")
    wrong = run(nodes, TOOL, "get", tmp_path / "lease", "small")
    assert wrong.returncode == 1 and "401" in wrong.stderr and "0123456789" not in wrong.stderr
    assert not (tmp_path / "lease").exists()
    wait_for(lambda: not leases(nodes), "nothing is left")


# CONS-2
def test_a_folder_of_others_is_left_alone(nodes, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "key").write_text("precious")
    for words in (["return", folder], ["get", folder, "small"]):
        refused = run(nodes, TOOL, *words)
        assert refused.returncode == 1 and "is not one of this script" in refused.stderr
    assert (folder / "key").read_text() == "precious" and not leases(nodes)
    (folder / "key").unlink()
    assert run(nodes, TOOL, "get", folder, "small").returncode == 0, "an empty one may be used"
    (folder / "more").write_text("precious")
    returned = run(nodes, TOOL, "return", folder)
    assert returned.returncode == 0 and "something else" in returned.stderr
    assert [path.name for path in folder.iterdir()] == ["more"]
    nodes.wait_ready()


# CONS-2
def test_another_host_key_is_refused(nodes, tmp_path):
    node, = nodes.tree.nodes()
    nodes.tree.change_node(node, host_keys=[Sshd(tmp_path / "other").host_key])
    done = run(nodes, TOOL, "run", "small", "true")
    assert done.returncode == 255 and "Host key verification failed" in done.stderr
    wait_for(lambda: not leases(nodes), "the node is given back")


# CONS-2
@pytest.mark.parametrize("change", [{"host_keys": []}, {"host_keys": ["ssh-rsa AAAA\nnode1 ssh-rsa BBBB"]},
                                    {"connection_type": "winrm"}, {"interface_ip": "-oProxyCommand=id"}],
                         ids=["no key", "keys", "type", "address"])
def test_a_node_that_ssh_must_not_reach_is_refused(nodes, tmp_path, change):
    node, = nodes.tree.nodes()
    nodes.tree.change_node(node, **change)
    done = run(nodes, TOOL, "get", tmp_path / "lease", "small")
    assert done.returncode == 1 and f"node {node}" in done.stderr, done.stderr
    wait_for(lambda: not leases(nodes), "the node is given back")


class WaitingServer:
    """Answers as a server that has no nodes yet, and notes the renewals of a lease."""

    ID = "0123456789abcdef0123456789abcdef"

    def __init__(self):
        self.renewals = 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                if self.path.endswith("/renew"):
                    server.renewals += 1
                self.answer(200, {"id": server.ID, "state": "held"})

            def do_GET(self):
                self.answer(200, {"id": server.ID, "state": "waiting", "waits": []})

            def do_DELETE(self):
                self.answer(404, {})

            def answer(self, status, value):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def waiting_server():
    server = WaitingServer()
    yield server
    server.close()


@pytest.fixture
def wall_clock(tmp_path):
    """A program `date` whose clock a test sets, by seconds in the file `off`; beside it `sleep` makes the file `asleep`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "off").write_text("0\n")
    (tools / "date").write_text(f'#!/bin/sh\n[ "$*" = +%s ] || exec /bin/date "$@"\n'
                                f'echo $(($(/bin/date +%s) + $(cat {tools}/off)))\n')
    (tools / "sleep").write_text(f'#!/bin/sh\ntouch {tools}/asleep\nexec /bin/sleep "$@"\n')
    for name in ("date", "sleep"):
        (tools / name).chmod(0o755)
    return tools


def environment_of(server, tools, **more):
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NODEPOOL_SERVER": f"http://127.0.0.1:{server.server.server_port}",
            "NODEPOOL_TOKEN": "t", **more}


# CONS-2
def test_a_lease_is_renewed_while_the_clock_is_set_back(waiting_server, wall_clock, tmp_path):
    folder = tmp_path / "lease"
    folder.mkdir()
    (folder / "id").write_text(waiting_server.ID)
    keeper = Process([TOOL, "keep", folder], tmp_path / "keep.log",
                     environment_of(waiting_server, wall_clock, NODEPOOL_LEASE="9"))
    try:
        wait_for(lambda: waiting_server.renewals, "a renewal", 30)
        (wall_clock / "asleep").unlink()
        wait_for((wall_clock / "asleep").exists, "it waits for the next one", 30)
        (wall_clock / "off").write_text("-3600\n")
        before = waiting_server.renewals
        wait_for(lambda: waiting_server.renewals > before + 1, "two more", 30)
    finally:
        keeper.kill()


# CONS-2
def test_who_waits_for_nodes_gives_up_although_the_clock_is_set_back(waiting_server, wall_clock, tmp_path):
    getter = Process([TOOL, "get", tmp_path / "lease", "small"], tmp_path / "get.log",
                     environment_of(waiting_server, wall_clock, NODEPOOL_WAIT="5"))
    try:
        wait_for((wall_clock / "asleep").exists, "it waits", 30)
        (wall_clock / "off").write_text("-3600\n")
        assert getter.wait(60) == 1 and "there were no nodes in time" in getter.output()
    finally:
        getter.kill()


# --- GitLab Runner ----------------------------------------------------------------------------

class GitLabRunner:
    """Calls a custom executor as GitLab Runner does, for one job."""

    BUILD_FAILURE, SYSTEM_FAILURE = 3, 4  # chosen by the runner
    FOLDER = CONSUMERS / "gitlab-runner"

    def __init__(self, nodes, folder, **variables):
        self.nodes, self.folder = nodes, folder
        self.environment = environment(nodes, BUILD_FAILURE_EXIT_CODE=str(self.BUILD_FAILURE),
                                       SYSTEM_FAILURE_EXIT_CODE=str(self.SYSTEM_FAILURE),
                                       BUILD_EXIT_CODE_FILE=str(folder / "status"),
                                       **{f"CUSTOM_ENV_{name}": value for name, value in variables.items()})

    def call(self, stage, *words):
        # Output to files: what a stage starts for later ones does not keep the runner waiting.
        with (self.folder / "out").open("w+") as out:
            done = subprocess.run([self.FOLDER / f"{stage}.sh", *words], stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=90, env=self.environment, start_new_session=True)
            out.seek(0)
            self.log = out.read()
        return done.returncode

    def config(self):
        assert self.call("config") == 0
        answer = json.loads(self.log)
        assert answer["driver"]["name"] == "Nodepool"
        self.environment.update(answer["job_env"])

    def script(self, stage, text):
        path = self.folder / "script"
        path.write_text(f"set -eo pipefail\n{text}\n")
        return self.call("run", path, stage)


# CONS-3
def test_gitlab_runs_a_job_stage_by_stage(nodes, tmp_path):
    runner = GitLabRunner(nodes, tmp_path, CI_JOB_ID="7", CI_JOB_IMAGE="small")
    runner.config()
    assert runner.call("prepare") == 0, runner.log
    assert "The node is" in runner.log
    for stage in ("prepare_script", "get_sources", "restore_cache", "download_artifacts"):
        assert runner.script(stage, f"echo {stage} on the node") == 0 and f"{stage} on the node" in runner.log
    assert runner.script("step_script", "echo it fails; exit 42") == runner.BUILD_FAILURE
    assert "it fails" in runner.log and (tmp_path / "status").read_text() == "42\n"
    assert runner.script("after_script", "true") == 0
    lease, = leases(nodes)
    first = nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"]
    wait_for(lambda: nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"] > first, "it is renewed", 30)
    assert runner.call("cleanup") == 0, runner.log
    nodes.wait_ready()
    assert runner.call("cleanup") == 0, "it may be repeated"


# CONS-3
def test_gitlab_hears_of_the_systems_failures(nodes, tmp_path):
    runner = GitLabRunner(nodes, tmp_path, CI_JOB_IMAGE="no-such-label")
    runner.config()
    assert runner.call("prepare") == runner.SYSTEM_FAILURE and "no-such-label" in runner.log
    assert runner.call("cleanup") == 0
    runner.environment["CUSTOM_ENV_CI_JOB_IMAGE"] = "small"
    assert runner.call("prepare") == 0, "another attempt"
    assert runner.call("prepare") == 0, "one more gives the first one's node back"
    assert len(leases(nodes)) == 1
    runner.environment["NODEPOOL_JOB"], job = str(tmp_path / "nowhere"), runner.environment["NODEPOOL_JOB"]
    assert runner.script("step_script", "true") == runner.SYSTEM_FAILURE
    runner.environment["NODEPOOL_JOB"] = job
    assert runner.call("cleanup") == 0
    assert GitLabRunner(nodes, tmp_path).call("cleanup") == 0, "of a job that had no config stage"
    nodes.wait_ready()


# CONS-3
def test_a_gitlab_runner_that_dies_keeps_no_node(nodes, tmp_path):
    runner = GitLabRunner(nodes, tmp_path, CI_JOB_IMAGE="small")
    runner.config()
    # prepare.sh's parent is the runner; this one ends after the stage.
    words = ["sh", "-c", '"$0"; sleep 1', runner.FOLDER / "prepare.sh"]
    subprocess.run(words, check=True, env=runner.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=90)
    nodes.wait_ready(25)
    wait_for(lambda: not pathlib.Path(runner.environment["NODEPOOL_JOB"]).exists(), "its folder is removed")


# --- GitHub Actions ---------------------------------------------------------------------------

class GitHub:
    """The one call of GitHub's API that run-one-job makes."""

    def __init__(self, status=201):
        self.calls = []
        github = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                github.calls.append((self.path, self.headers["Authorization"], body))
                answer = json.dumps({"runner": {"id": 1}, "encoded_jit_config": "b25jZQ=="} if status == 201 else
                                    {"message": "Resource not accessible"}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def runner_software(tmp_path, sshd, site):
    """A node whose home has the runner's software, in the form of a program that notes how it is called."""
    home = tmp_path / "home"
    (home / "actions-runner").mkdir(parents=True)
    program = home / "actions-runner/run.sh"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/called; echo Running job; exit 5\n')
    program.chmod(0o755)
    with (sshd.folder / "sshd_config").open("a") as settings:
        settings.write(f'ForceCommand cd {home} && eval "$SSH_ORIGINAL_COMMAND"\n')
    sshd.stop()
    sshd.start()
    return tmp_path / "called"


@pytest.mark.parametrize("status", [201, 403])
# CONS-4
def test_github_runs_one_job_on_a_node(nodes, runner_software, status):
    github = GitHub(status)
    try:
        done = run(nodes, CONSUMERS / "github-actions/run-one-job", "small", "self-hosted", "debian",
                   env={"GITHUB_API_URL": github.url, "GITHUB_TOKEN": "ghp_secret", "GITHUB_REPOSITORY": "octo/repo"})
    finally:
        github.close()
    (path, authorization, body), = github.calls
    assert path == "/repos/octo/repo/actions/runners/generate-jitconfig" and authorization == "Bearer ghp_secret"
    assert body["labels"] == ["self-hosted", "debian"] and body["runner_group_id"] == 1
    if status == 201:
        assert done.returncode == 5 and "Running job" in done.stdout, done.stderr
        assert runner_software.read_text() == "--jitconfig b25jZQ==\n"
    else:
        assert done.returncode == 1 and "Resource not accessible" in done.stderr
        assert not runner_software.exists()
    assert "ghp_secret" not in done.stdout + done.stderr
    nodes.wait_ready()
    assert list(nodes.site.folder.glob("nodepool-job-*")) == []


# --- Forgejo ----------------------------------------------------------------------------------

class Forgejo:
    """The two calls of Forgejo's API that run-one-job makes."""

    def __init__(self, status=201):
        self.calls = []
        forgejo = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                runner = {"id": 5, "uuid": "d4637a60", "token": "e1f3d26e"}
                self.note(body, status, runner if status == 201 else {"message": "token is required"})

            def do_DELETE(self):
                self.note(None, 204, None)

            def note(self, body, status, answer):
                forgejo.calls.append((self.command, self.path, self.headers["Authorization"], body))
                text = json.dumps(answer).encode() if answer else b""
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize("status", [201, 401])
# CONS-7
def test_forgejo_runs_one_job_on_a_node(nodes, tmp_path, sshd, status):
    home = tmp_path / "home"
    home.mkdir()
    program = home / "forgejo-runner"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/called; cat "${{7#file:}}"; echo; echo Running job; exit 5\n')
    program.chmod(0o755)
    with (sshd.folder / "sshd_config").open("a") as settings:
        settings.write(f'ForceCommand cd {home} && PATH={home}:$PATH && eval "$SSH_ORIGINAL_COMMAND"\n')
    sshd.stop()
    sshd.start()
    forgejo = Forgejo(status)
    try:
        done = run(nodes, CONSUMERS / "forgejo/run-one-job", "small", "debian:host", "33ba7d51",
                   env={"FORGEJO_URL": forgejo.url, "FORGEJO_TOKEN": "fj_secret", "FORGEJO_REPOSITORY": "octo/repo"})
    finally:
        forgejo.close()
    runners = "/api/v1/repos/octo/repo/actions/runners"
    made, *deleted = forgejo.calls
    assert made[:3] == ("POST", runners, "token fj_secret") and made[3]["ephemeral"] is True
    if status == 201:
        assert done.returncode == 5 and "e1f3d26e\nRunning job\n" in done.stdout, done.stderr
        assert (tmp_path / "called").read_text() == (f"one-job --url {forgejo.url} --uuid d4637a60 --token-url file:{home}/runner-token "
                                                     "--label debian:host --handle 33ba7d51 --wait\n")
        assert [call[:3] for call in deleted] == [("DELETE", runners + "/5", "token fj_secret")]
    else:
        assert done.returncode == 1 and "token is required" in done.stderr and not deleted
        assert not (tmp_path / "called").exists()
    assert "fj_secret" not in done.stdout + done.stderr
    nodes.wait_ready()
    assert list(nodes.site.folder.glob("nodepool-job-*")) == []


# --- Ansible ----------------------------------------------------------------------------------

INVENTORY = CONSUMERS / "ansible/nodepool-inventory"


# CONS-5
def test_ansible_finds_and_reaches_the_nodes(nodes, tmp_path):
    places = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "ANSIBLE_PRIVATE_KEY_FILE": str(nodes.key),
              "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"), "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
              "ANSIBLE_SSH_ARGS": "-o ControlMaster=no"}  # the path of a socket would be too long
    assert json.loads(run(nodes, INVENTORY, "--list", env=places).stdout) == {"_meta": {"hostvars": {}}}
    client = nodes.client()
    lease = client.make(["small"])
    node, = client.held(lease)["nodes"]
    for more in ({}, {"NODEPOOL_REQUEST": lease}):
        listed = run(nodes, "ansible-inventory", "-i", INVENTORY, "--list", env={**places, **more})
        assert listed.returncode == 0, listed.stderr
        assert json.loads(listed.stdout)["small"]["hosts"] == [node["id"]]
    done = run(nodes, "ansible", "-i", INVENTORY, "small", "-m", "command", "-a", "echo on the node", env=places)
    assert done.returncode == 0 and "on the node" in done.stdout, done.stdout + done.stderr
    nodes.tree.change_node(node["id"], host_keys=[Sshd(tmp_path / "other").host_key])
    refused = run(nodes, "ansible", "-i", INVENTORY, "small", "-m", "ping", env=places)
    assert refused.returncode != 0 and "Host key verification failed" in refused.stdout + refused.stderr
    nodes.tree.change_node(node["id"], host_keys=["ssh-rsa AAAA\nx ssh-rsa BBBB"])
    left_out = run(nodes, INVENTORY, "--list", env=places)
    assert "left out" in left_out.stderr and "small" not in json.loads(left_out.stdout)
    assert client.end(lease).status == 204


# --- Jenkins ----------------------------------------------------------------------------------

# The steps of pipelines that the library uses, in Groovy as Jenkins has it.
PIPELINE = r"""
import java.util.concurrent.*
def (path, server, label, outcome) = args
def token = System.getenv('NODEPOOL_TOKEN')
def binding = new Binding(env: [NODEPOOL_TOKEN: token])
def script = new GroovyShell(this.class.classLoader, binding).parse(new File(path))
script.metaClass.string = { Map settings -> settings }
script.metaClass.withCredentials = { List bindings, Closure body -> assert bindings[0].credentialsId == 'secret'; body() }
script.metaClass.echo = { text -> println(text) }
script.metaClass.error = { text -> throw new RuntimeException(text) }
script.metaClass.sleep = { Map settings -> assert settings.unit == 'SECONDS'; Thread.sleep(settings.time * 1000L) }
script.metaClass.parallel = { Map branches ->
    def failures = new ConcurrentLinkedQueue()
    def threads = branches.findAll { it.value instanceof Closure }.collect { name, branch ->
        Thread.start { try { branch() } catch (Throwable problem) { failures.add(problem) } }
    }
    threads*.join()
    if (failures) throw failures.peek()
}
try {
    script.call(server: server + '/', credentialsId: 'secret', labels: [label], lease: 30) { nodes ->
        println "node ${nodes[0].interface_ip} ${nodes[0].connection_port}"
        if (outcome == 'fail') throw new RuntimeException('the build fails')
        Thread.sleep(outcome as long)
    }
    println 'SUCCESS'
} catch (Exception problem) {
    println "FAILURE ${problem.message}"
}
"""


@pytest.fixture
def pipeline(nodes, tmp_path):
    annotation = tmp_path / "com/cloudbees/groovy/cps/NonCPS.groovy"
    annotation.parent.mkdir(parents=True)
    annotation.write_text("package com.cloudbees.groovy.cps\nimport java.lang.annotation.*\n"
                          "@Retention(RetentionPolicy.RUNTIME) @interface NonCPS {}\n")
    harness = tmp_path / "pipeline.groovy"
    harness.write_text(PIPELINE)
    step = CONSUMERS / "jenkins/vars/nodepoolNode.groovy"

    def play(label, outcome):
        words = ["groovy", "-cp", tmp_path, harness, step, nodes.url, label, outcome]
        process = Process(words, tmp_path / f"pipeline-{outcome}.log", environment(nodes, NODEPOOL_TOKEN=nodes.token))
        nodes.site.started.append(process)
        return process

    return play


# CONS-6
def test_jenkins_uses_nodes_in_a_step(nodes, pipeline, sshd):
    good = pipeline("small", "14000")
    wait_for(lambda: f"node 127.0.0.1 {sshd.port}\n" in good.output(), "the body has its node", 60)
    lease, = leases(nodes)
    first = nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"]
    wait_for(lambda: nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"] > first, "it is renewed", 30)
    assert good.wait(60) == 0 and "SUCCESS" in good.output(), good.output()
    nodes.wait_ready()


# CONS-6
@pytest.mark.parametrize("label, outcome, said", [("small", "fail", "FAILURE the build fails"),
                                                  ("no-such-label", "0", "FAILURE Nodepool answers 409: no launcher offers label no-such-label")])
def test_jenkins_gives_nodes_back_after_a_failure(nodes, pipeline, label, outcome, said):
    failed = pipeline(label, outcome)
    assert failed.wait(60) == 0 and said in failed.output(), failed.output()
    nodes.wait_ready()
