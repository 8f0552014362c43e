"""A copy of the tree with the mutants: chooses them, writes them into the sources, builds once."""
import dataclasses
import hashlib
import json
import pathlib
import random
import re
import subprocess

from sites import Site, find_sites, instrumented, overlaps

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ("src/sched", "src/launcher", "src/driver", "src/store")
# The programs that test these folders, including the simulation with few seeds.
PROGRAMS = ("sched_test", "store_test", "driver_test", "driver_cloud_test", "driver_cloud_api_test", "drivers_test",
            "drivers_fake_test", "drivers_static_test", "drivers_metastatic_test", "drivers_openstack_test", "drivers_aws_test",
            "drivers_gce_test", "drivers_kubernetes_test", "launcher_test", "builder_test", "web_test", "cli_test",
            "simulation_test")
CODE = re.compile(r"(src|sim|testing)/.*\.(cc|h)")
COMPILE_ERROR = re.compile(r"(src/[\w/.]+\.cc):(\d+):\d+: (?:fatal |internal compiler )?error", re.MULTILINE)


def subjects(tree):
    """The sources that are changed, by folder."""
    def is_subject(path):
        return not path.name.endswith("_test.cc") and "testing" not in path.parts
    return {folder: sorted(path for path in (tree / folder).rglob("*.cc") if is_subject(path)) for folder in FOLDERS}


def digest(root, files):
    sum_ = hashlib.sha256()
    for file in sorted(files):
        sum_.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return sum_.hexdigest()


class Plan:
    """The chosen mutants. Number N is the N-th of them."""

    def __init__(self, root, seed, count):
        self.lines, self.waiting = {}, {}
        for folder, files in subjects(root).items():
            texts = {str(file.relative_to(root)): file.read_text() for file in files}
            sites = [site for file, text in texts.items() for site in find_sites(file, text)]
            random.Random(f"{seed} {folder}").shuffle(sites)
            self.waiting[folder] = sites
            self.lines[folder] = sum(text.count("\n") for text in texts.values())
        self.chosen: list[Site] = []
        # Each folder in proportion to its lines.
        for folder in self.waiting:
            for _ in range(round(count * self.lines[folder] / sum(self.lines.values()))):
                self.chosen.append(self.next_of(folder))

    def next_of(self, folder):
        while self.waiting[folder]:
            site = self.waiting[folder].pop(0)
            if not overlaps(site, self.chosen):
                return site
        raise SystemExit(f"{folder} has too few places to change")

    def reject(self, errors):
        """Replaces mutants that do not compile: `errors` are (file, line). Returns how many were replaced."""
        bad = [at for at, site in enumerate(self.chosen)
               if any(file == site.file and site.line <= line <= site.last_line for file, line in errors)]
        for at in bad:
            folder = next(name for name in FOLDERS if self.chosen[at].file.startswith(name + "/"))
            self.chosen[at] = self.next_of(folder)
        return len(bad)

    def numbered(self):
        return dict(enumerate(self.chosen, 1))

    def save(self, path):
        path.write_text(json.dumps([dataclasses.asdict(site) for site in self.chosen], indent=1))

    def load(self, path):
        self.chosen = [Site(**fields) for fields in json.loads(path.read_text())]


class WorkTree:
    """`folder`/tree is the copy; its build folder has the same path as in the original, so ccache has most of it."""

    def __init__(self, root, folder, seed, count):
        self.root, self.folder, self.tree = root, folder, folder / "tree"
        self.plan = Plan(root, seed, count)
        files = [file for group in subjects(root).values() for file in group]
        self.name = f"{seed}-{count}-{digest(root, files)[:12]}"
        self.plan_file = folder / f"plan-{self.name}.json"
        if self.plan_file.exists():
            self.plan.load(self.plan_file)

    @property
    def results_file(self):
        return self.folder / f"results-{self.name}.jsonl"

    @property
    def programs(self):
        return [self.tree / "build/debug/bin" / name for name in PROGRAMS]

    def suite(self):
        """Changes with the code that mutants do not change, mainly the tests."""
        changed = {file for group in subjects(self.root).values() for file in group}
        code = [self.root / name for name in self.tracked() if CODE.fullmatch(name)]
        return digest(self.root, [file for file in code if file not in changed])

    def tracked(self):
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=self.root,
                                capture_output=True, check=True)
        names = listed.stdout.decode().split("\0")
        return [name for name in names if name and (self.root / name).is_file()]

    def write(self):
        """Brings the copy up to date; an unchanged file keeps its time, so it is not recompiled."""
        by_file: dict[str, list] = {}
        for number, site in self.plan.numbered().items():
            by_file.setdefault(site.file, []).append((number, site))
        for name in self.tracked():
            source, copy = self.root / name, self.tree / name
            content = source.read_bytes()
            if name in by_file:
                content = instrumented(content.decode(), by_file[name]).encode()
            if not copy.exists() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                copy.chmod(source.stat().st_mode)
        header = self.tree / "src/mutants.h"
        text = (HERE / "mutants.h").read_text()
        if not header.exists() or header.read_text() != text:
            header.write_text(text)

    def build(self, jobs):
        """Builds the programs; mutants that do not compile are replaced by others."""
        while True:
            self.write()
            if not (self.tree / "build/debug/build.ninja").exists():
                subprocess.run(["cmake", "--preset", "debug", f"-DCMAKE_PROJECT_nodepool_INCLUDE={HERE}/unity.cmake"],
                               cwd=self.tree, check=True, stdout=subprocess.DEVNULL)
            log = self.folder / "build.log"
            with open(log, "wb") as output:
                done = subprocess.run(["cmake", "--build", "--preset", "debug", "-j", str(jobs), "--target", *PROGRAMS,
                                       "--", "-k", "0"], cwd=self.tree, stdout=output, stderr=subprocess.STDOUT)
            if done.returncode == 0:
                break
            errors = {(file, int(line)) for file, line in COMPILE_ERROR.findall(log.read_text(errors="replace"))}
            replaced = self.plan.reject(errors)
            if replaced == 0:
                raise SystemExit(f"the changed tree does not build, and no mutant is the cause: see {log}")
            print(f"{replaced} places do not compile when changed; others take their place", flush=True)
        self.plan.save(self.plan_file)
