"""What tools/check-results refuses, and what it lets through."""
import subprocess

import pytest

from nodepool_helpers import ROOT

HEADER = """
Result<std::shared_ptr<const Acl>> AclOf(std::string_view path) const;
static std::optional<Node> NodeNamed(const std::string& name);
Task<Expected<Node>> ReadNode(NodeId id);
const Node* Cached(NodeId id);
std::optional<Value> Value(int key);
"""
OTHER = "Value Value() const;\n"


def check(folder, line: str) -> subprocess.CompletedProcess:
    (folder / "src/zk/testing").mkdir(parents=True, exist_ok=True)
    (folder / "src/zk/tree.h").write_text(HEADER)
    (folder / "src/zk/other.h").write_text(OTHER)
    source = f"void Use() {{\n  {line}\n}}\n"
    (folder / "src/zk/use.cc").write_text(source)
    # Tests are let off.
    for name in ("use_test.cc", "testing/fake.cc"):
        (folder / "src/zk" / name).write_text("void Use() { NodeNamed(a)->x; }\n")
    return subprocess.run([ROOT / "tools/check-results", "--root", folder], capture_output=True, text=True)


@pytest.mark.parametrize("line", [
    "deliver(tree_.AclOf(event.path)->get());",
    "int x = *NodeNamed(fmt::format(\"{})\", name));",
    "return *tree->NodeNamed(name);",
    "Use((co_await ReadNode(id))->state);",
    "Node node = *co_await ReadNode(id);",
    "if (!a || *NodeNamed(b)) return;",
])
def test_what_is_used_unseen_is_refused(tmp_path, line):
    result = check(tmp_path, line)
    assert result.returncode == 1 and "src/zk/use.cc:2: " in result.stdout, result.stdout


@pytest.mark.parametrize("line", [
    "auto acl = tree_.AclOf(path); if (acl) Use(acl->get());",
    "if (NodeNamed(name)) Use(a * NodeNamed(name).value_or(1));",
    "Cached(id)->state;",
    "*Cached(id);",
    "Value()->x;",
    "auto f = [](int x) -> int { return NodeNamed(x).has_value(); };",
    "// NodeNamed(x)->y",
    "Log(\"NodeNamed(x)->y\");",
])
def test_what_is_seen_first_or_always_there_is_not(tmp_path, line):
    result = check(tmp_path, line)
    assert result.returncode == 0, result.stdout
