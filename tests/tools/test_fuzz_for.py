"""tools/fuzz-for, with scripts in place of fuzzers."""
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUZZER = """#!/bin/sh
for word; do
  case $word in
    -max_total_time=*) seconds=${word#*=} ;;
    -artifact_prefix=*) prefix=${word#*=} ;;
    -*) ;;
    *) corpus=${corpus:-$word} ;;
  esac
done
echo "$0 $seconds" >> "$(dirname "$0")/../calls"
echo x > "$corpus/input"
echo "#7 DONE   cov: 42 ft: 1"
echo "stat::number_of_executed_units: 7"
"""
# Some hundredths of a second of processor time.
WORKS = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done\n"
WAITS = """trap 'exit 72' INT
touch "$(dirname "$0")/../waits"
while :; do sleep 0.05; done
"""
CRASHES = 'echo boom > "${prefix}crash-1"; exit 77\n'


@pytest.fixture
def build(tmp_path):
    (tmp_path / "bin").mkdir()
    return tmp_path


def add_fuzzer(build: pathlib.Path, name: str, more: str = ""):
    path = build / "bin" / name
    path.write_text(FUZZER + more)
    path.chmod(0o755)


def fuzz_for(*words) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "tools/fuzz-for", *map(str, words)], capture_output=True, text=True, timeout=60)


def calls(build: pathlib.Path) -> list[str]:
    """The fuzzers in the order in which they ran."""
    return [pathlib.Path(line.rsplit(" ", 1)[0]).name for line in (build / "calls").read_text().splitlines()]


def test_each_fuzzer_gets_an_equal_share_of_the_processor(build):
    for name in ("a_fuzz", "b_fuzz", "c_fuzz"):
        add_fuzzer(build, name, WORKS)
    done = fuzz_for(1.2 / 3600, "--jobs", 2, "--turn", 7, "--build", build, "--corpus", build / "kept")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("a_fuzz", "b_fuzz", "c_fuzz"):
        turns = calls(build).count(name)
        assert turns >= 2
        assert re.search(rf"^{name} +{7 * turns} +42 +1 +[01] s  ok$", done.stdout, re.M)
    assert {line.rsplit(" ", 1)[1] for line in (build / "calls").read_text().splitlines()} == {"7"}
    assert (build / "kept/a_fuzz/input").exists()


def test_a_run_goes_on_where_it_was_stopped(build):
    add_fuzzer(build, "a_fuzz", WAITS)
    with subprocess.Popen([ROOT / "tools/fuzz-for", "1", "--build", build], stdout=subprocess.PIPE, text=True) as stopped:
        while not (build / "waits").exists():
            assert stopped.poll() is None
            time.sleep(0.01)
        stopped.terminate()
        assert re.search(r"^a_fuzz +7 +42 +1 +0 s  ok$", stopped.communicate(timeout=30)[0], re.M)
        assert stopped.returncode == 3
    (build / "bin/a_fuzz").unlink()
    add_fuzzer(build, "a_fuzz", WORKS)
    printed = fuzz_for(0.3 / 3600, "--build", build).stdout
    turns = len(calls(build))
    assert turns >= 2
    assert re.search(rf"^a_fuzz +{7 * turns} +42 +1 +0 s  ok$", printed, re.M)
    assert fuzz_for(0.3 / 3600, "--build", build).returncode == 0
    assert len(calls(build)) == turns
    assert fuzz_for(0.3 / 3600, "--build", build, "--new").returncode == 0
    assert len(calls(build)) > turns


def test_a_crash_is_reported_with_what_reproduces_it(build):
    add_fuzzer(build, "good_fuzz", WORKS)
    add_fuzzer(build, "bad_fuzz", CRASHES)
    done = fuzz_for(0.4 / 3600, "--build", build)
    assert done.returncode == 1
    assert calls(build).count("bad_fuzz") == 1
    assert re.search(r"^bad_fuzz +7 +42 +1 +0 s  CRASHED$", done.stdout, re.M)
    assert f"To reproduce: {build}/bin/bad_fuzz {build}/crashes/bad_fuzz-crash-1" in done.stdout
    assert "1 fuzzers found nothing, 1 crashed" in done.stdout


@pytest.mark.parametrize("words", [["0"], ["-1"], ["1", "--jobs", "0"], ["x"], ["1", "--turn", "0"]])
def test_wrong_options(build, words):
    assert fuzz_for(*words, "--build", build).returncode == 2


def test_without_fuzzers_it_says_how_to_build_them(build):
    done = fuzz_for("1", "--build", build)
    assert done.returncode == 1
    assert "cmake --preset asan" in done.stderr
