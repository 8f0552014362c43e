"""What tools/mutants changes, and that a mutant is on only when it is chosen."""
import os
import re
import subprocess
import sys

import pytest

from nodepool_helpers import ROOT
from services import wait_for

sys.path.insert(0, str(ROOT / "tools/mutation"))
import sites  # noqa: E402
import trial  # noqa: E402
import work_tree  # noqa: E402

SOURCE = """#include <cstdio>
#include <optional>
#include <string>

// if (a < b) is a comment.
enum class Change { kSkip, kWrite };
struct Logger { void Info(const char*) {} } logger_;
std::string said;
void Say(const std::string& word) { said += word; }
constexpr bool kIsBig = sizeof(int) > 2;

bool IsIn(int value, std::optional<int> limit) {
  if (!limit) return false;
  return value >= 0 && value < *limit;
}

Change Decide(int value) {
  logger_.Info("deciding");
  if (value == 7) {
    Say("if (seven); ");
    return Change::kWrite;
  }
  int next = value + 1;
  value = next;
  for (int i = 0; i < value; ++i) Say("step ");
  return Change::kSkip;
}

int main() {
  int answers[] = {IsIn(-1, 3), IsIn(0, 3), IsIn(3, 3), IsIn(1, {}), int(Decide(7)), int(Decide(1))};
  std::printf("%d%d%d%d %d%d ", answers[0], answers[1], answers[2], answers[3], answers[4], answers[5]);
  std::printf("%s", said.c_str());
}
"""
SOUND = "0100 10 if (seven); step step "
# What the program says with each mutant on, in the order of the places: (kind, what is changed, its output). Without the
# look whether there is a limit, anything may happen.
MUTANTS = [
    ("condition negated", "!limit", None),
    ("answer reversed", "false", "0101 10 if (seven); step step "),
    ("part of a condition ignored", "value >= 0", "1100 10 if (seven); step step "),
    ("comparison changed", ">=", "0000 10 if (seven); step step "),
    ("off by one", "0", "0000 10 if (seven); step step "),
    ("part of a condition ignored", "value < *limit", "0110 10 if (seven); step step "),
    ("comparison changed", "<", "0110 10 if (seven); step step "),
    ("condition negated", "value == 7", "0100 01 " + 8 * "step " + "if (seven); "),
    ("comparison changed", "==", "0100 01 " + 8 * "step " + "if (seven); "),
    ("off by one", "7", "0100 00 " + 10 * "step "),
    ("call dropped", 'Say("if (seven); ");', "0100 10 step step "),
    ("write dropped", "Change::kWrite", "0100 00 if (seven); step step "),
    ("off by one", "1", "0100 10 if (seven); step step step "),
    ("assignment dropped", "value = next;", "0100 10 if (seven); step "),
    ("off by one", "0", "0100 10 if (seven); step "),
    ("comparison changed", "<", "0100 10 if (seven); step step step "),
    ("call dropped", 'Say("step ");', "0100 10 if (seven); "),
]


def places():
    return [site for site in sites.find_sites("a.cc", SOURCE) if site.line < 28]


def test_what_is_changed():
    assert [(site.kind, site.code) for site in places()] == [(kind, code) for kind, code, _ in MUTANTS]


def compiled(folder, numbered):
    (folder / "a.cc").write_text(sites.instrumented(SOURCE, numbered))
    subprocess.run(["g++", "-std=c++23", "-I", ROOT / "tools/mutation", "-o", folder / "a", folder / "a.cc"], check=True,
                   timeout=120)

    def run(**environment):
        done = subprocess.run([folder / "a"], capture_output=True, text=True, env={**os.environ, **environment})
        return done.stdout
    return run


def test_a_mutant_is_on_when_it_is_chosen(tmp_path):
    outputs = {site: output for site, (_, _, output) in zip(places(), MUTANTS)}
    left = places()
    while left:  # those that do not overlap, at a time
        chosen = [site for at, site in enumerate(left) if not sites.overlaps(site, left[:at])]
        left = [site for site in left if site not in chosen]
        run = compiled(tmp_path, list(enumerate(chosen, 1)))
        assert run() == SOUND
        reached = tmp_path / "reached"
        reached.write_text("")
        run(NODEPOOL_MUTANTS_REACHED=str(reached))
        assert {int(line) for line in reached.read_text().split()} == set(range(1, len(chosen) + 1))
        for number, site in enumerate(chosen, 1):
            if outputs[site] is not None:
                assert run(NODEPOOL_MUTANT=str(number)) == outputs[site], (site.kind, site.code)


def test_places_of_errors_are_those_of_the_source():
    site = sites.find_sites("a.cc", SOURCE)[-1]
    text = sites.instrumented(SOURCE, [(1, site)])
    assert text.splitlines()[:2] == ['#include "mutants.h"', "#line 1"]
    assert text.count("\n") == SOURCE.count("\n") + 2


@pytest.mark.parametrize("script, outcome", [("exit 0", True), ("echo '[  FAILED  ] A.B'; exit 1", False),
                                             ("exec sleep 1000", False), ("while true; do true; done", False), ("kill -SEGV $$", False),
                                             ("sleep 1000 & exit 0", True)])
def test_a_run_ends_with_all_that_it_started(tmp_path, script, outcome):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/group\n{script}\n")
    program.chmod(0o755)
    is_good, _, _ = trial.run(program, ["A.*"], trial.Cost(1, 2))
    assert is_good is outcome
    group = (tmp_path / "group").read_text().strip()
    wait_for(lambda: subprocess.run(["pgrep", "-g", group, "-r", "D,R,S"], stdout=subprocess.DEVNULL).returncode == 1,
             "nothing of it runs")


def test_every_test_program_of_the_changed_folders_is_tried():
    lists = [path for folder in work_tree.FOLDERS for path in (ROOT / folder).rglob("CMakeLists.txt")]
    programs = {name for path in lists for name in re.findall(r"nodepool_test\((\w+)", path.read_text())}
    assert "driver_cloud_api_test" in programs
    assert programs <= set(work_tree.PROGRAMS)


def test_every_equivalent_mutant_is_of_a_line_that_is_there():
    rows = [line.split("\t") for line in (ROOT / "tests/equivalent-mutants.tsv").read_text().splitlines() if not line.startswith("#")]
    for file, _, line, _ in rows:
        text = " ".join((ROOT / file).read_text().split())
        places = [line[:start] + line[start + 1:end] + line[end + 1:] for start, opening in enumerate(line) if opening == "["
                  for end, closing in enumerate(line) if closing == "]" and end > start]
        assert any(place in text for place in places), f"{file} has no line {line}"
