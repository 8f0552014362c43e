#include <fmt/format.h>

#include "store/decode.h"
#include "store/repeat.h"
#include "store/store.h"
#include "zk/lock.h"

namespace nodepool::store {

Task<std::optional<Store::Contender>> Store::FirstContender(NodeId id) {
  std::vector<std::string> names = co_await NodeContenders(id);
  if (names.empty()) co_return std::nullopt;
  std::string path = paths::NodeLock(id) + "/" + names.front();
  zk::Result<zk::NodeData> read = co_await Get(path);
  if (!read) co_return std::nullopt;
  co_return Contender{path, read->data};
}

Task<std::optional<std::string>> Store::NodeOwner(NodeId id) {
  std::optional<Contender> first = co_await FirstContender(std::move(id));
  if (!first) co_return std::nullopt;
  co_return first->identifier;
}

Task<bool> Store::ClaimNode(NodeId id, std::string owner, std::function<Change(Node&)> change,
                            RequestId request) {
  std::function<Task<bool>()> attempt = [&] { return TryClaim(id, owner, change, request); };
  bool is_claimed = co_await Repeat(loop_, random_, std::move(attempt));
  co_return is_claimed;
}

Task<bool> Store::ReleaseNode(NodeId id, std::string owner, std::function<Change(Node&)> change) {
  std::string given_up;  // the contender that an attempt may have removed
  std::function<Task<bool>()> attempt = [&] { return TryRelease(id, owner, change, given_up); };
  bool is_released = co_await Repeat(loop_, random_, std::move(attempt));
  co_return is_released;
}

// A lock of ours that is there already is that of an attempt whose answer was lost, or of
// a program that died before it wrote the node.
Task<bool> Store::TryClaim(NodeId id, std::string owner, std::function<Change(Node&)> change,
                           RequestId request) {
  for (int i = 0; i < kOwnershipAttempts; ++i) {
    std::string directory = paths::NodeLock(id);
    std::optional<StoredNode> node = co_await ReadNode(id);
    if (!node) co_return false;
    zk::Result<zk::Children> children = co_await client_.GetChildren(directory);
    std::optional<Contender> first = co_await FirstContender(id);
    if (first && first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return first.has_value();
    std::vector<zk::Op> ops;
    if (!children) ops.emplace_back(zk::CreateOp{directory, "", zk::CreateMode::kPersistent});
    if (!first) {
      ops.emplace_back(zk::CreateOp{directory + "/" + zk::ContenderPrefix(random_), owner,
                                    zk::CreateMode::kPersistentSequential});
    }
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    zk::Result<zk::Stat> is_requested = co_await client_.Exists(paths::Request(request));
    if (is_requested) ops.emplace_back(zk::DeleteOp{paths::Request(request), -1});
    if (!is_requested && !first) co_return false;  // whoever finds the node without a request frees it
    zk::MultiResult result = co_await client_.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

Task<bool> Store::TryRelease(NodeId id, std::string owner, std::function<Change(Node&)> change,
                             std::string& given_up) {
  for (int i = 0; i < kOwnershipAttempts; ++i) {
    if (!given_up.empty()) {
      co_await client_.Sync(given_up);
      zk::Result<zk::Stat> is_there = co_await client_.Exists(given_up);
      if (!is_there) co_return true;
    }
    std::optional<StoredNode> node = co_await ReadNode(id);
    if (!node) co_return false;
    std::optional<Contender> first = co_await FirstContender(id);
    if (!first || first->identifier != owner) co_return false;
    if (change(node->record) == Change::kSkip) co_return false;
    std::vector<zk::Op> ops;
    ops.emplace_back(zk::SetOp{paths::Node(id), ToJson(node->record), node->revision.version});
    ops.emplace_back(zk::DeleteOp{first->path, -1});
    given_up = first->path;
    zk::MultiResult result = co_await client_.Multi(std::move(ops));
    if (result.ok()) co_return true;
  }
  co_return false;
}

}  // namespace nodepool::store
