"""What tools/check-coroutines refuses, and what it lets through."""
import subprocess

import pytest

from nodepool_helpers import ROOT

BAD = {
    "a pointer as a result": "Task<const store::StoredLease*> Find(LeaseId id);",
    "a reference in a container as a result": "Task<std::vector<std::reference_wrapper<Node>>> All();",
    "a view as a result": "Task<std::optional<std::string_view>> Name(NodeId id);",
    "an iterator as a result": "Task<std::map<NodeId, Node>::const_iterator> Next();",
    "a capturing lambda": "auto work = [this](NodeId id) -> Task<> { co_await Delete(id); };",
    "a pointer that is used after a wait": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  co_await Wait();
  Show(node->record);
}""",
    "a pointer of auto": """
Task<> F(Context& context, NodeId id) {
  auto node = context.nodes.Find(id);
  if (node == nullptr) co_return;
  co_await Wait();
  Show(node->record);
}""",
    "a pointer in the condition": """
Task<> F(Context& context, NodeId id) {
  if (const auto* node = context.nodes.Find(id)) {
    co_await Wait();
    Show(node->record);
  }
}""",
    "a reference to a part": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  const std::string& comment = node->record.comment;
  co_await Wait();
  Show(comment);
}""",
    "a reference to an index": """
Task<> F(Context& context) {
  const std::set<NodeId>& ready = context.nodes.InState(NodeState::kReady);
  co_await Wait();
  Show(ready.size());
}""",
    "a loop over a cache": """
Task<> F(Context& context) {
  for (const auto& [id, node] : context.nodes.all()) co_await Delete(id);
}""",
    "a loop over an index": """
Task<> F(Context& context) {
  for (NodeId id : context.nodes.OfProvider(name)) {
    if (id.empty()) continue;
    co_await Delete(id);
  }
}""",
    "an iterator": """
Task<> F(const store::ImageCache& images, BuildKey key) {
  auto build = images.builds().find(key);
  co_await Wait();
  if (build != images.builds().end()) Show(build->second);
}""",
    "an entry of a member": """
Task<> Desk::F(std::string client) {
  std::size_t& count = counts_[client];
  co_await Wait();
  ++count;
}""",
    "a wait in the loop, a use at its beginning": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  while (node->record.state == NodeState::kReady) co_await Wait();
}""",
    "a wait in one of the branches": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  if (is_late) {
    co_await Wait();
  } else {
    Show(node->record);
  }
  Show(node->record);
}""",
    "an assignment that waits": """
Task<> F(Context& context, NodeId id) {
  Slot* slot = context.slots.Find(id);
  slot->node = co_await Make();
}""",
    "an argument as a whole": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  if (node != nullptr) co_await Delete(*node);
}""",
}

GOOD = {
    "a copy as a result": "Task<std::optional<store::StoredLease>> Find(LeaseId id);",
    "a function as a result": "Task<std::function<void(const Node&)>> Change(NodeId id);",
    "a pointer that owns": "Task<std::shared_ptr<const Config>> Load();",
    "a lambda that only makes a task": "auto work = [this](NodeId id) { return Delete(id); };",
    "a comment": "// Task<Node*> is refused.",
    "a use before the wait": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  if (node == nullptr) co_return;
  co_await Delete(node->id);
}""",
    "a copy": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* cached = context.nodes.Find(id);
  if (cached == nullptr) co_return;
  store::StoredNode node = *cached;
  co_await Wait();
  Show(node.record);
}""",
    "another look": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  while (node != nullptr) {
    co_await Wait();
    node = context.nodes.Find(id);
  }
}""",
    "a look in each round": """
Task<> F(Context& context, NodeId id) {
  while (true) {
    const store::StoredNode* node = context.nodes.Find(id);
    if (node == nullptr) co_return;
    co_await Wait();
  }
}""",
    "a wait on a path that ends": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  if (is_late) co_return co_await Wait();
  if (is_full) {
    co_await Wait();
    throw Full();
  }
  Show(node->record);
}""",
    "an iterator that is set anew": """
Task<> F(const store::NodeCache& nodes, Pace& pace) {
  auto next = nodes.all().begin();
  while (next != nodes.all().end()) {
    NodeId last = next->first;
    ++next;
    if (pace.is_due(1)) {
      co_await pace.Pause();
      next = nodes.all().upper_bound(last);
    }
  }
}""",
    "the whole container of a cache": """
Task<> F(const store::ImageCache& images) {
  const auto& builds = images.builds();
  co_await Wait();
  Show(builds.size());
}""",
    "ids that are collected first": """
Task<> F(Context& context) {
  std::vector<NodeId> due;
  for (const auto& [id, node] : context.nodes.all()) {
    if (node.is_locked()) due.push_back(id);
  }
  for (const NodeId& id : due) co_await Delete(id);
}""",
    "what belongs to the coroutine": """
Task<> F(std::map<NodeId, Node> nodes, NodeId id) {
  auto found = nodes.find(id);
  co_await Wait();
  Show(found->second);
  for (const auto& [other, node] : nodes) co_await Delete(other);
}""",
    "the same name in another function": """
Task<> F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  Show(node->record);
  co_return;
}
Task<> G(Node node) {
  co_await Wait();
  Show(node);
}""",
    "a function that does not wait": """
void F(Context& context, NodeId id) {
  const store::StoredNode* node = context.nodes.Find(id);
  tasks.Spawn("delete", Delete(id));
  Show(node->record);
}""",
}


@pytest.fixture
def check(tmp_path):
    def run(text):
        sample = tmp_path / "sample.cc"
        sample.write_text(text)
        return subprocess.run([ROOT / "tools/check-coroutines", sample], capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("sample", BAD.values(), ids=BAD.keys())
def test_what_may_be_gone_is_refused(check, sample):
    result = check(sample)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "sample.cc:" in result.stdout


@pytest.mark.parametrize("sample", GOOD.values(), ids=GOOD.keys())
def test_the_rest_is_let_through(check, sample):
    result = check(sample)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_fault_is_named_with_its_place(check):
    result = check(BAD["a pointer that is used after a wait"])
    assert "sample.cc:5: node, kept since line 3, may be gone" in result.stdout
