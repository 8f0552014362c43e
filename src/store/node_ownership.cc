#include <fmt/format.h>

#include "store/decode.h"
#include "store/nodes.h"

namespace nodepool::store {
namespace {

constexpr int kAttempts = 5;  // while other clients write

}  // namespace

Task<std::optional<Nodes::Contender>> Nodes::FirstContender(NodeId id) {
  std::vector<std::string> names = co_await Contenders(id);
  if (names.empty()) co_return std::nullopt;
  std::string path = paths::NodeLock(id) + "/" + names.front();
  zk::Result<zk::NodeData> read = co_await tree_.Get(path);
  if (!read) co_return std::nullopt;
  co_return Contender{path, read->data};
}

Task<std::optional<std::string>> Nodes::Owner(NodeId id) {
  std::optional<Contender> first = co_await FirstContender(std::move(id));
  if (!first) co_return std::nullopt;
  co_return first->identifier;
}

Task<bool> Nodes::Claim(NodeId id, std::string owner, std::function<Change(Node&)> change,
                        RequestId request) {
  auto attempt = [&] { return TryClaim(id, owner, change, request); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

Task<bool> Nodes::Release(NodeId id, std::string owner, std::function<Change(Node&)> change) {
  std::string given_up;  // the contender that an attempt may have removed
  auto attempt = [&] { return TryRelease(id, owner, change, given_up); };
  co_return co_await tree_.Repeat<bool>(attempt);
}

// A lock of this owner that exists already is that of an attempt whose answer was lost, or of a
// program that died before it wrote the node.
Task<bool> Nodes::TryClaim(NodeId id, std::string owner, std::function<Change(Node&)> change,
                           RequestId request) {
  zk::Client& client = tree_.client();
  for (int i = 0; i < kAttempts; ++i) {
    std::string directory = paths::NodeLock(id);
    std::optional<StoredNode> node = co_await Read(id);
    if (!node) co_return false;
    zk::Result<zk::Children> children = co_await client.GetChildren(directory);
    std::optional<Contender> first = co_await FirstContender(id);
    if (first && first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return first.has_value();
    std::vector<zk::Op> ops;
    if (!children) ops.emplace_back(zk::CreateOp{directory, "", zk::CreateMode::kPersistent});
    if (!first) {
      ops.emplace_back(zk::CreateOp{directory + "/" + zk::ContenderPrefix(tree_.random()), owner,
                                    zk::CreateMode::kPersistentSequential});
    }
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    zk::Result<zk::Stat> is_requested = co_await client.Exists(paths::Request(request));
    if (is_requested) ops.emplace_back(zk::DeleteOp{paths::Request(request), -1});
    if (!is_requested && !first) co_return false;  // the sweep finds the node without a request and frees it
    zk::MultiResult result = co_await client.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

Task<bool> Nodes::TryRelease(NodeId id, std::string owner, std::function<Change(Node&)> change,
                             std::string& given_up) {
  zk::Client& client = tree_.client();
  for (int i = 0; i < kAttempts; ++i) {
    if (!given_up.empty()) {
      co_await client.Sync(given_up);
      zk::Result<zk::Stat> is_there = co_await client.Exists(given_up);
      if (!is_there) co_return true;
    }
    std::optional<StoredNode> node = co_await Read(id);
    if (!node) co_return false;
    std::optional<Contender> first = co_await FirstContender(id);
    if (!first || first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return false;
    std::vector<zk::Op> ops;
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    ops.emplace_back(zk::DeleteOp{first->path, -1});
    given_up = first->path;
    zk::MultiResult result = co_await client.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

}  // namespace nodepool::store
