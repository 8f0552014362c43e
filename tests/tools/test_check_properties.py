"""What tools/check-properties refuses, and what it lets through."""
import subprocess

import pytest

from nodepool_helpers import ROOT


def check(folder, text: str) -> subprocess.CompletedProcess:
    path = folder / "src/sched/plan_property_test.cc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return subprocess.run([ROOT / "tools/check-properties", "--root", folder], capture_output=True, text=True)


@pytest.mark.parametrize("condition", ["RC_ASSERT(it == end || it->second > 0);", "RC_PRE(a && b);",
                                       "RC_ASSERT(sum({1, 2}) ||\n          (a && b));"])
def test_a_bare_condition_is_refused(tmp_path, condition):
    result = check(tmp_path, f"\n{condition}\n")
    assert result.returncode == 1 and "src/sched/plan_property_test.cc:2: " in result.stdout, result.stdout


@pytest.mark.parametrize("condition", ["RC_ASSERT((it == end || it->second > 0));", "RC_ASSERT(any(a || b) == c);", "if (a || b) RC_ASSERT(c);",
                                       'RC_ASSERT(text == "a || b");', "RC_ASSERT(a);  // or b || c"])
def test_what_has_one_operand_is_let_through(tmp_path, condition):
    result = check(tmp_path, f"\n{condition}\n")
    assert result.returncode == 0, result.stdout
