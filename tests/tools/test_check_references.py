"""What tools/check-references refuses, and what it lets through."""
import subprocess

import pytest

from nodepool_helpers import ROOT

PAGE = """# Launcher

## 1. Terms

## 2. Parts (all)

| Id | Behaviour |
|---|---|
| AWS-7 | a row |
| LA-01, S-basic | another |

### 2.1 Loop

1. wait
2. decide

| 5 | a row |

## 10. Quota
"""
DECISIONS = "| D-01 | an open point | a decision |\n"
COORDINATION = "## 17. Black-box checks\n\n5. a check\n"


@pytest.fixture
def tree(tmp_path):
    """A checkout with one page, in which files may be written and checked."""

    class Tree:
        def write(self, name, text):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        def faults(self, name, text):
            """What is said of the file, without its name."""
            self.write(name, text)
            done = subprocess.run([ROOT / "tools/check-references", "--root", tmp_path], text=True,
                                  stdout=subprocess.PIPE, timeout=60)
            *faults, summary = done.stdout.splitlines()
            assert summary.startswith("check-references: ") and done.returncode == bool(faults)
            (tmp_path / name).unlink()
            return [fault.removeprefix(f"{name}:") for fault in faults]

    made = Tree()
    made.write("docs/spec/launcher.md", PAGE)
    made.write("docs/spec/decisions.md", DECISIONS)
    made.write("docs/spec/coordination.md", COORDINATION)
    return made


@pytest.mark.parametrize("comment", [
    "launcher.md 1, 2.1 and 10", "(launcher.md 10; D-01)", "(launcher.md 1-2)", "launcher.md 2.1.2", "launcher.md 2.1.5",
    "launcher.md, section 2.1", "launcher.md 2.1, step 6", "LA-01, AWS-7 and coordination.17.5", "S-basic",
    "docs/spec/launcher.md", "build/docs/reference/api.md", "1.5 s, 3 of 4 (see ZooKeeper 3.8), proc(5), (about 2.5 s)", "ids such as D-nn"])
def test_what_resolves_is_let_through(tree, comment):
    assert tree.faults("src/a.cc", f"int a;  // {comment}\n") == []


@pytest.mark.parametrize("comment, fault", [
    ("launcher.md 3", "launcher.md 3: docs/spec has no such section"),
    ("launcher.md 2.1, 2.2", "launcher.md 2.2: docs/spec has no such section"),
    ("launcher.md 2.1.3", "launcher.md 2.1.3: docs/spec has no such section"),
    ("launcher.md 1-11", "launcher.md 11: docs/spec has no such section"),
    ("design.md 1", "design.md 1: docs/spec has no such section"),
    ("launcher.10", "launcher.10: write launcher.md 10"),
    ("notes/design.md", "notes/design.md: there is no such file"),
    ("LA-01..02", "LA-02: nothing has this id"),
    ("D-02", "D-02: nothing has this id"),
    ("coordination.17.5, 17.6", "coordination.17.6: nothing has this id"),
    ("as planned (2.1)", "2.1: names no page"),
    ("as planned (10, step 3, D-01)", "10, step 3, D-01: names no page"),
    ("2.1: as planned", "2.1: names no page"),
    ("see section 2.1", "2.1: names no page")])
def test_what_leads_nowhere_is_refused(tree, comment, fault):
    reasons = [reason for reason in tree.faults("src/a.cc", f"int a;\n\nint b;  // {comment}\n")
               if not reason.startswith("3: design.md: ")]
    assert reasons == [f"3: {fault}"]


def test_a_reference_may_be_broken_over_lines(tree):
    assert tree.faults("src/a.h", "// Decides (launcher.md\n// 2.1).\nint a();\n") == []
    assert tree.faults("src/a.h", "// Decides (launcher.md\n// 2.2).\nint a();\n") == [
        "1: launcher.md 2.2: docs/spec has no such section"]


def test_of_a_program_only_comments_count(tree):
    text = 'WORDS = "launcher.md 3"\nNUMBER = round(2.1)\n\n\ndef f():\n    """launcher.md 4"""\n    # launcher.md 5\n'
    faults = ["6: launcher.md 4: docs/spec has no such section", "7: launcher.md 5: docs/spec has no such section"]
    assert tree.faults("tools/a.py", text) == faults
    assert tree.faults("tools/a", "#!/usr/bin/python3\n" + text) == [fault.replace("7:", "8:").replace("6:", "7:") for fault in faults]
    assert tree.faults("examples/a.yaml", "a: (2.1)  # (2.1)\n") == ["1: 2.1: names no page"]


def test_tables_and_documents_are_read_whole(tree):
    assert tree.faults("tests/a.tsv", "launcher.md 3\n") == ["1: launcher.md 3: docs/spec has no such section"]
    assert tree.faults("docs/a.md", "(2.1) is a number, launcher.md 3 a reference\n\n```\nlauncher.md 4\n```\n") == [
        "1: launcher.md 3: docs/spec has no such section"]


def test_links_lead_to_files_and_headings(tree):
    good = "# A `b`: c\n[x](spec/launcher.md#2-parts-all) [y](#a-b-c) [z](https://host/none.md) [d](spec) [launcher.md](spec/launcher.md)\n"
    assert tree.faults("docs/a.md", good) == []
    assert tree.faults("docs/a.md", "[x](none.md)\n[y](spec/launcher.md#2-parts)\n[z](#b)\n") == [
        "1: none.md: there is no such file", "2: spec/launcher.md#2-parts: there is no such heading",
        "3: #b: there is no such heading"]
    assert tree.faults("README.md", "[x](docs/spec/launcher.md#21-loop)\n") == []


def test_sources_by_the_end_of_their_path(tree):
    tree.write("src/launcher/pool.h", "#pragma once\n")
    page = "Start at `launcher/pool.h`, then `src/launcher/pool.h`.\n\n`launcher/former.h` is gone, as is `former.h`.\n"
    assert tree.faults("docs/a.md", page) == ["3: launcher/former.h: there is no such source"]
    assert tree.faults("src/b.cc", "// As launcher/former.h has it.\n") == ["1: launcher/former.h: there is no such source"]
    assert tree.faults("src/b.cc", '#include "launcher/former.h"  // launcher/pool.h\n') == []


def test_folders_by_a_part_of_their_path(tree):
    tree.write("src/launcher/leases/desk.h", "#pragma once\n")
    assert tree.faults("docs/a.md", "`src/launcher/`, `launcher/leases/`, `leases/`; `a/b`, `/var/lib/`\n`peers/`, `launcher/peers/`\n") == [
        "2: peers/: there is no such folder", "2: launcher/peers/: there is no such folder"]
    assert tree.faults("src/b.cc", "// `peers/`\n") == []
