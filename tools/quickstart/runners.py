"""./run runners: jobs of a repository of GitHub on machines of this computer, or on this computer itself."""
import dataclasses
import getpass
import json
import os
import pathlib
import pwd
import re
import shutil
import sys
import time

from quickstart.installation import Installation
from quickstart.real import RealMachines
from quickstart.runner_program import RunnerProgram, newest
from services import Sshd

LISTEN_SECONDS = 120
REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


@dataclasses.dataclass
class Wanted:
    """What the command line and the environment say. Everything but the token may be shown."""
    repository: str
    site: str
    ca: str | None
    runs_on: str
    runner: pathlib.Path | None
    allow_public: bool
    token: str = dataclasses.field(repr=False)

    def program(self) -> RunnerProgram:
        return RunnerProgram(self.runner) if self.runner else newest(self.site, self.repository, self.token, self.ca)


def add_options(parser):
    group = parser.add_argument_group("./run runners")
    group.add_argument("--github", metavar="OWNER/REPO", help="whose jobs run here")
    group.add_argument("--github-url", default=os.environ.get("NODEPOOL_GITHUB_URL", "https://github.com"), metavar="URL",
                       help="of a GitHub Enterprise Server (%(default)s)")
    group.add_argument("--github-ca", metavar="FILE", help="its private authority")
    group.add_argument("--runs-on", default="nodepool", metavar="NAME", help="what jobs say (%(default)s)")
    group.add_argument("--runner", type=pathlib.Path, metavar="ARCHIVE", help="GitHub's actions-runner-linux-*.tar.gz; else it is downloaded once")
    group.add_argument("--allow-public", action="store_true", help="also for a public repository, where others decide what runs")


def wanted_by(options) -> Wanted:
    """RuntimeError: what is missing or wrong."""
    if not REPOSITORY.fullmatch(options.github or ""):
        raise RuntimeError("./run runners needs --github OWNER/REPO, the repository whose jobs run here")
    if not re.fullmatch(r"https://[A-Za-z0-9.:-]+/?", options.github_url):
        raise RuntimeError(f"--github-url is the address of a GitHub, as https://github.com, not {options.github_url}")
    return Wanted(options.github, options.github_url.rstrip("/"), options.github_ca, options.runs_on, options.runner,
                  options.allow_public, find_token(options.github))


def find_token(repository: str) -> str:
    for name in ("NODEPOOL_GITHUB_TOKEN", "GITHUB_TOKEN"):
        if token := os.environ.get(name, "").strip():
            return token
    if not sys.stdin.isatty():
        raise RuntimeError("No token: set GITHUB_TOKEN, or start ./run runners at a terminal, where it asks for one")
    print(f"A token of GitHub that may register runners of {repository}: a fine-grained one with the repository's right\n"
          "\"Administration: read and write\", or a classic one with the scope repo (https://github.com/settings/tokens).")
    return getpass.getpass("Token (it is not shown): ").strip()


class Runners(Installation):
    """What both kinds of machines have in common: the service, its secret, and what is said of jobs."""

    def prepare(self, wanted: Wanted):
        self.wanted = wanted
        self.secure = self.folder / "secure.yaml"
        self.options = (*self.options, "-s", self.secure)

    def write_secret(self):
        self.secure.touch(mode=0o600)
        self.secure.write_text("runner-services:\n  - name: github\n    token: " + json.dumps(self.wanted.token) + "\n")
        self.values |= {"NODEPOOL_GITHUB": f"{self.wanted.site}/{self.wanted.repository}", "NODEPOOL_GITHUB_CA": self.wanted.ca or "",
                        "NODEPOOL_RUNS_ON": self.wanted.runs_on, "NODEPOOL_KEY": self.key,
                        "NODEPOOL_ALLOW_PUBLIC": "true" if self.wanted.allow_public else "false"}

    def stop(self):
        super().stop()
        if hasattr(self, "secure"):
            self.secure.unlink(missing_ok=True)

    def runners(self) -> dict:
        return self.listed("runners") or {"runners": [], "runner_jobs": []}

    def wait_for_jobs(self):
        """Returns when GitHub can send jobs. RuntimeError: what is wrong, why, and what to do."""
        def is_listening():
            sets = self.runners()["runners"]
            if fault := next((each for each in sets if each["fault"]), None):
                raise RuntimeError(f"{fault['set']}: {fault['fault']}.\n{fault['remedy'] or ''}.")
            return any(each["state"] == "listening" for each in sets)

        self.wait(is_listening, "the session with GitHub", LISTEN_SECONDS)


class RunnersOnRealMachines(Runners, RealMachines):
    example = "runners/real-machines.yaml"

    def begin_anew(self):
        super().begin_anew()
        self.write_secret()
        program = self.wanted.program()
        self.values |= {"NODEPOOL_RUNNER": program.archive.resolve(), "NODEPOOL_RUNNER_SHA256": program.digest}


class RunnersOnThisComputer(Runners):
    example = "runners/this-computer.yaml"
    fullness = "this computer as a node"

    def start(self, say):
        self.begin_anew()
        self.write_secret()
        home = self.folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        say("unpacking GitHub's runner")
        self.wanted.program().unpack(home / "actions-runner")
        sshd = Sshd(self.folder / "sshd", home=home)
        self.started.append(sshd)
        sshd.login_key(self.key)
        sshd.start()
        self.values |= {"NODEPOOL_SSH_PORT": sshd.port, "NODEPOOL_SSH_HOST_KEY": sshd.host_key,
                        "NODEPOOL_SSH_USER": pwd.getpwuid(os.getuid()).pw_name}
        self.config.write_text(self.example_text())
        self.start_launcher(say)

    def is_full(self, nodes: list[dict]) -> bool:
        return any(node["state"] == "ready" for node in nodes)


def on_this_computer(folder: pathlib.Path, wanted: Wanted, reason: str) -> Runners:
    user = pwd.getpwuid(os.getuid()).pw_name
    print(f"No machines of their own for the jobs: {reason}.\nThey run on this computer instead, as {user}, one at a time: only for "
          f"repositories whose workflows you trust.", flush=True)
    installation = RunnersOnThisComputer(folder)
    installation.prepare(wanted)
    return installation


def on_real_machines(folder: pathlib.Path, wanted: Wanted, host) -> Runners:
    installation = RunnersOnRealMachines(folder, host)
    installation.prepare(wanted)
    return installation


def serve(installation: Runners):
    """Until Ctrl-C; prints what becomes of each job."""
    installation.start(lambda text: print(f"{text[0].upper()}{text[1:]}", flush=True))
    installation.wait_for_jobs()
    print(f"\nGitHub sends jobs of {installation.wanted.repository} here. In a workflow:\n\n    runs-on: {installation.wanted.runs_on}\n\n"
          f"Ctrl-C ends it; the log is {installation.log}\n", flush=True)
    seen = {}
    while installation.launcher.is_running():
        jobs = {f"{job['set']}/{job['id']}": job for job in installation.runners()["runner_jobs"]}
        for line in changes(seen, jobs):
            print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)
        seen = jobs
        time.sleep(0.5)
    raise RuntimeError(f"The launcher {installation.launcher.how_it_ended()}; see {installation.log}")


def changes(before: dict, after: dict) -> list[str]:
    """What to say of jobs, as `nodepool runners --json` lists them, by key."""
    lines = []
    for key, job in after.items():
        known = before.get(key)
        if known is None or (known["state"], known["node"], known["repository"]) != (job["state"], job["node"], job["repository"]):
            where = f" on node {job['node']}" if job["node"] else ""
            lines.append(f"{name_of(job)}: {job['state']}{where}" + (f" ({job['why']})" if job["why"] else ""))
    # Of a job that ends between two looks the runner alone was seen.
    return lines + [f"{name_of(job)}: over, and its node is given back"
                    for key, job in before.items() if key not in after and job["node"]]


def name_of(job: dict) -> str:
    return f"job {job['job']} of {job['repository']}" if job["repository"] else "a runner"
