"""tools/fuzz-for, with scripts in place of fuzzers."""
import pathlib
import re
import subprocess

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


def test_each_fuzzer_gets_an_equal_share(build):
    for name in ("a_fuzz", "b_fuzz", "c_fuzz"):
        add_fuzzer(build, name)
    done = fuzz_for("0.01", "--jobs", 2, "--build", build, "--corpus", build / "kept")
    assert done.returncode == 0, done.stderr
    calls = [line.rsplit(" ", 1) for line in (build / "calls").read_text().splitlines()]
    assert {(pathlib.Path(path).name, seconds) for path, seconds in calls} == {(f"{n}_fuzz", "24") for n in "abc"}
    assert re.search(r"^a_fuzz +7 +42 +1 +0 s  ok$", done.stdout, re.M)
    assert (build / "kept/a_fuzz/input").exists()
    assert re.search(r"^a_fuzz +7 +42 +0 +0 s  ok$",
                     fuzz_for("0.01", "--build", build, "--corpus", build / "kept").stdout, re.M)


def test_a_crash_is_reported_with_what_reproduces_it(build):
    add_fuzzer(build, "good_fuzz")
    add_fuzzer(build, "bad_fuzz", CRASHES)
    done = fuzz_for("0.01", "--build", build)
    assert done.returncode == 1
    assert re.search(r"^bad_fuzz +7 +42 +1 +0 s  CRASHED$", done.stdout, re.M)
    assert f"To reproduce: {build}/bin/bad_fuzz {build}/crashes/bad_fuzz-crash-1" in done.stdout
    assert "1 fuzzers found nothing, 1 crashed" in done.stdout


@pytest.mark.parametrize("words", [["0"], ["-1"], ["1", "--jobs", "0"], ["x"]])
def test_wrong_options(build, words):
    assert fuzz_for(*words, "--build", build).returncode == 2


def test_without_fuzzers_it_says_how_to_build_them(build):
    done = fuzz_for("1", "--build", build)
    assert done.returncode == 1
    assert "cmake --preset asan" in done.stderr
