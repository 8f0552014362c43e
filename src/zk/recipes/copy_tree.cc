#include "zk/recipes/copy_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "zk/znode.h"

namespace nodepool::zk {
namespace {

constexpr std::size_t kReadsAtOnce = 100;
constexpr std::size_t kBatchOps = 2000;
constexpr std::size_t kBatchBytes = 400'000;  // well below what a server takes in one packet
constexpr std::size_t kOpBytes = 64;          // what an operation takes besides path and data

std::string ChildPath(const std::string& parent, const std::string& name) {
  return (parent == "/" ? "" : parent) + "/" + name;
}

bool IsServers(const std::string& path) { return path == "/zookeeper"; }

std::int64_t MissingNumbers(const TreeContent::Znode& znode) {
  return std::max<std::int64_t>(znode.created - znode.children, 0);
}

void Add(TreeContent& content, const std::string& path, NodeData node) {
  content.bytes += path.size() + node.data.size();
  if (auto parent = content.znodes.find(ParentPath(path)); parent != content.znodes.end()) {
    ++parent->second.children;
  }
  content.znodes[path] = {std::move(node.data), ChildrenEverCreated(node.stat), 0};
}

struct Reading {
  std::string path;
  Task<Result<NodeData>> data;
  Task<Result<Children>> children;
};

// Operations that become one transaction.
struct Batch {
  std::vector<Op> ops;
  std::size_t bytes = 0;

  void Add(const std::string& path, std::size_t size, Op op) {
    ops.push_back(std::move(op));
    bytes += path.size() + size + kOpBytes;
  }
  bool is_full() const { return ops.size() >= kBatchOps || bytes >= kBatchBytes; }
};

std::string PathOf(const Op& op) {
  return std::visit([](const auto& kind) { return kind.path; }, op);
}

[[noreturn]] void Refuse(const std::string& path, Code code) {
  bool is_taken = code == Code::kNodeExists || code == Code::kNotEmpty;
  throw Error(is_taken ? Verdict::kConflict : Verdict::kFail,
              fmt::format("writing {}: {}", path, ToString(code)));
}

Task<> Commit(Client& client, Batch& batch) {
  std::vector<Op> ops = std::exchange(batch.ops, {});
  batch.bytes = 0;
  if (ops.empty()) co_return;
  const auto* alone = ops.size() == 1 ? std::get_if<CreateOp>(&ops.front()) : nullptr;
  if (alone != nullptr) {
    // The largest znodes fit into a packet only as a single operation.
    Result<Created> created = co_await client.Create(alone->path, alone->data, CreateMode::kPersistent);
    if (!created) Refuse(alone->path, created.error());
    co_return;
  }
  MultiResult result = co_await client.Multi(ops);
  if (!result.ok()) Refuse(PathOf(ops[static_cast<std::size_t>(result.failed)]), result.code());
}

Task<> UseUpNumbers(Client& client, std::string path, std::int64_t count) {
  constexpr std::int64_t kAtOnce = 1000;
  std::string child = ChildPath(path, "nodepool-migrate");
  while (count > 0) {
    Batch batch;
    for (std::int64_t i = std::min(count, kAtOnce); i > 0; --i) {
      batch.Add(child, 0, CreateOp{child, ""});
      batch.Add(child, 0, DeleteOp{child});
    }
    count -= kAtOnce;
    co_await Commit(client, batch);
  }
}

}  // namespace

std::int64_t TreeContent::missing_numbers() const {
  std::int64_t sum = 0;
  for (const auto& [path, znode] : znodes) sum += MissingNumbers(znode);
  return sum;
}

Task<TreeContent> ReadTree(Client& client, std::string root, std::size_t max_bytes) {
  TreeContent content;
  content.root = root;
  std::vector<std::string> waiting{root};
  while (!waiting.empty()) {
    std::vector<Reading> readings;
    for (; !waiting.empty() && readings.size() < kReadsAtOnce; waiting.pop_back()) {
      readings.push_back({waiting.back(), client.Get(waiting.back()), client.GetChildren(waiting.back())});
    }
    for (Reading& reading : readings) {
      Result<NodeData> node = co_await std::move(reading.data);
      Result<Children> children = co_await std::move(reading.children);
      if (!node || !children) continue;  // deleted meanwhile
      if (node->stat.ephemeral_owner != 0) {
        content.ephemerals.push_back(reading.path);
        continue;
      }
      if (reading.path != "/") Add(content, reading.path, std::move(*node));
      if (content.bytes > max_bytes) {
        throw Error(Verdict::kQuota, fmt::format("{} has more than {} bytes", root, max_bytes));
      }
      for (const std::string& name : children->names) {
        std::string child = ChildPath(reading.path, name);
        if (!IsServers(child)) waiting.push_back(std::move(child));
      }
    }
  }
  co_return content;
}

Task<> WriteTree(Client& client, const TreeContent& content) {
  co_await EnsurePath(client, ParentPath(content.root));
  Batch batch;
  for (const auto& [path, znode] : content.znodes) {
    std::size_t size = znode.data.size();
    if (batch.bytes + size > kBatchBytes) co_await Commit(client, batch);
    batch.Add(path, size, CreateOp{path, znode.data});
    if (batch.is_full()) co_await Commit(client, batch);
  }
  co_await Commit(client, batch);
  for (const auto& [path, znode] : content.znodes) {
    co_await UseUpNumbers(client, path, MissingNumbers(znode));
  }
}

Task<> DeleteTree(Client& client, const TreeContent& content) {
  std::vector<std::string> paths;  // deepest last
  for (const auto& [path, znode] : content.znodes) paths.push_back(path);
  paths.insert(paths.end(), content.ephemerals.begin(), content.ephemerals.end());
  Batch batch;
  for (; !paths.empty(); paths.pop_back()) {
    batch.Add(paths.back(), 0, DeleteOp{paths.back()});
    if (batch.is_full()) co_await Commit(client, batch);
  }
  co_await Commit(client, batch);
}

std::string FirstDifference(const TreeContent& original, const TreeContent& copy) {
  for (const auto& [path, znode] : original.znodes) {
    auto found = copy.znodes.find(path);
    if (found == copy.znodes.end()) return path + ": is missing in the copy";
    if (found->second.data != znode.data) return path + ": has other data in the copy";
    if (found->second.created < znode.created) return path + ": its numbers begin earlier in the copy";
  }
  for (const auto& [path, znode] : copy.znodes) {
    if (!original.znodes.contains(path)) return path + ": is in the copy alone";
  }
  return "";
}

}  // namespace nodepool::zk
