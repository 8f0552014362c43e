"""What tools/check-casts refuses, and what it lets through."""
import subprocess

import pytest

from nodepool_helpers import ROOT

REASON = "// The sink may be any of spdlog's."
CASTS = ["auto* file = dynamic_cast<FileSink*>(&sink);", "auto own = std::dynamic_pointer_cast<const Own>(config);"]


def check(folder, place: str, text: str) -> subprocess.CompletedProcess:
    path = folder / "src" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return subprocess.run([ROOT / "tools/check-casts", "--root", folder], capture_output=True, text=True)


@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_without_a_reason_is_refused(tmp_path, cast):
    result = check(tmp_path, "base/log/sinks.cc", f"\n{cast}\n")
    assert result.returncode == 1 and "src/base/log/sinks.cc:2: " in result.stdout, result.stdout


@pytest.mark.parametrize("cast", CASTS)
def test_a_reason_above_it_is_enough(tmp_path, cast):
    result = check(tmp_path, "base/log/sinks.cc", f"{REASON}\n{cast}\n")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("place", ["drivers/cloud/adapter.cc", "drivers/cloud/config/config_test.cc", "drivers/all_test.cc"])
def test_in_a_driver_there_is_no_reason(tmp_path, place):
    result = check(tmp_path, place, f"{REASON}\n{CASTS[0]}\n")
    assert result.returncode == 1 and f"src/{place}:2: " in result.stdout, result.stdout


@pytest.mark.parametrize("line", ["int a = static_cast<int>(b);", "a();  // as dynamic_cast would", 'Log("dynamic_cast");',
                                  "const auto& own = As<Own>(label);"])
def test_what_is_no_cast_is_let_through(tmp_path, line):
    result = check(tmp_path, "drivers/cloud/adapter.cc", f"\n{line}\n")
    assert result.returncode == 0, result.stdout
