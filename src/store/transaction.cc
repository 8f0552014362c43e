#include "store/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/scope_exit.h"
#include "store/record_kinds.h"
#include "zk/recipes/lock.h"

namespace nodepool::store {

Task<std::vector<std::string>> ZnodesBelow(zk::Client& client, NodeId id) {
  std::vector<std::string> below, directories;
  zk::Result<zk::Children> children = co_await client.GetChildren(paths::Node(id));
  if (!children) co_return below;
  for (const std::string& child : children->names) {
    std::string directory = paths::Node(id) + "/" + child;
    zk::Result<zk::Children> inner = co_await client.GetChildren(directory);
    directories.push_back(directory);
    if (!inner) continue;
    for (const std::string& name : inner->names) {
      if (!zk::IsContender(name)) below.push_back(directory + "/" + name);
    }
    std::vector<std::string> line = zk::SortedContenders(std::move(inner->names));
    for (const std::string& name : line | std::views::reverse) below.push_back(directory + "/" + name);
  }
  below.insert(below.end(), directories.begin(), directories.end());
  co_return below;
}

std::vector<zk::Op> DeletionOf(const StoredNode& node, const std::vector<std::string>& below, WallTime now) {
  std::string path = paths::Node(node.id);
  Node record = node.record;
  record.SetState(NodeState::kDeleted, now);
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{path, ToJson(record), node.revision.version});
  for (const std::string& znode : below) ops.emplace_back(zk::DeleteOp{znode, -1});
  ops.emplace_back(zk::DeleteOp{path, -1});
  return ops;
}

namespace {

std::string PathOf(const zk::Op& op) {
  return std::visit([](const auto& part) { return part.path; }, op);
}

}  // namespace

template <class Stored>
void Transaction<Stored>::TakeLock() {
  lock_use_ = LockUse::kTake;
  prefix_ = zk::ContenderPrefix(tree_.random());
}

template <class Stored>
void Transaction<Stored>::KeepLock(zk::HeldLock lock) {
  lock_use_ = LockUse::kKeep;
  lock_ = std::move(lock);
}

template <class Stored>
void Transaction<Stored>::GiveLock(zk::HeldLock lock) {
  lock_use_ = LockUse::kGive;
  lock_ = std::move(lock);
}

template <class Stored>
Task<typename Transaction<Stored>::Result> Transaction<Stored>::Run() {
  if (lock_use_ == LockUse::kGive) lock_.BeginRelease();
  Task<Result> write = tree_.Repeat<Result>([this] { return AttemptOnce(); });
  if (lock_use_ != LockUse::kTake) return write;
  claim_ = tree_.ClaimLock(LockDirectory());
  return WithCleanup(std::move(write), [this] { return WithdrawUnlessDone(); });
}

template <class Stored>
Task<typename Transaction<Stored>::Result> Transaction<Stored>::AttemptOnce() {
  for (;;) {
    RequireHeld();
    // After a lost connection this runs again, and the transaction may have been carried out.
    if (is_uncertain_) {
      std::optional<Result> known = co_await FindOut();
      is_done_ = known == Result::kDone;
      if (known) co_return *known;
      is_uncertain_ = false;
    }
    if (is_stale_) {
      bool exists = co_await Reread();
      if (!exists) co_return Result::kGone;
    }
    next_ = stored_.record;
    if (change_(next_) == Change::kSkip) co_return Result::kSkipped;
    // The session may have ended while the record was read.
    RequireHeld();
    std::vector<zk::Op> ops = Operations();
    std::vector<std::string> op_paths;
    for (const zk::Op& op : ops) op_paths.push_back(PathOf(op));
    // Stays so if the answer is lost: the await throws.
    is_uncertain_ = true;
    zk::MultiResult answer = co_await client_.Multi(std::move(ops));
    is_uncertain_ = false;
    if (answer.ok()) {
      stored_.record = std::move(next_);
      stored_.revision = RevisionOf(answer.results[record_op_].stat);
      if (lock_use_ == LockUse::kTake)
        taken_ = zk::HeldLock{answer.results[1].path, client_.session(), claim_};
      is_done_ = true;
      co_return Result::kDone;
    }
    std::size_t failed = static_cast<std::size_t>(answer.failed);
    if (failed == record_op_ && answer.code() == zk::Code::kBadVersion) {
      is_stale_ = true;
      continue;
    }
    if (failed == record_op_ && answer.code() == zk::Code::kNoNode) co_return Result::kGone;
    failed_path_ = op_paths[failed];
    failed_code_ = answer.code();
    // Our contender is gone, though the session seemed to live: what is done under the lock ends as with it.
    if (failed_path_ == lock_.path) {
      throw Error(Verdict::kLostSession,
                  fmt::format("{} {}: the lock is gone", RecordKind<Stored>::kName, stored_.id));
    }
    co_return Result::kRefused;
  }
}

// Whether the transaction whose answer was lost was carried out; nullopt: it was not, and `stored`
// is up to date.
template <class Stored>
Task<std::optional<typename Transaction<Stored>::Result>> Transaction<Stored>::FindOut() {
  // The server that answers now may be behind the one that carried it out.
  co_await client_.Sync(RecordKind<Stored>::Path(stored_.id));
  bool is_done = co_await LockShowsSuccess();
  if (is_done) stored_.record = next_;
  zk::Result<zk::NodeData> read = co_await client_.Get(RecordKind<Stored>::Path(stored_.id));
  RequireHeld();
  // A released lock shows that all was done, whatever has happened to the record since.
  if (is_done && lock_use_ == LockUse::kGive) co_return Result::kDone;
  if (!read) co_return Result::kGone;
  bool is_ours = read->data == data_;
  stored_ = Decode<Stored>(stored_.id, *read, tree_.Now());
  if (is_done || (is_ours && lock_use_ != LockUse::kGive && lock_use_ != LockUse::kTake))
    co_return Result::kDone;
  co_return std::nullopt;
}

template <class Stored>
Task<bool> Transaction<Stored>::LockShowsSuccess() {
  if (lock_use_ == LockUse::kGive) {
    zk::Result<zk::Stat> contender = co_await client_.Exists(lock_.path);
    co_return !contender.has_value();
  }
  if (lock_use_ != LockUse::kTake) co_return false;
  zk::Result<zk::Children> children = co_await client_.GetChildren(LockDirectory());
  if (!children) co_return false;
  auto own =
      std::ranges::find_if(children->names, [this](const auto& name) { return name.starts_with(prefix_); });
  if (own == children->names.end()) co_return false;
  taken_ = zk::HeldLock{LockDirectory() + "/" + *own, client_.session(), claim_};
  co_return true;
}

// Failures, mostly the loss of the session, are left to the end of the session.
template <class Stored>
Task<> Transaction<Stored>::WithdrawUnlessDone() {
  if (is_done_) co_return;
  ScopeExit unclaim([this] { claim_->End(); });
  if (!is_uncertain_ && !taken_) co_return;
  auto withdraw = [this] { return Withdraw(); };
  Outcome<> withdrawn = co_await Attempt(tree_.Repeat<void>(withdraw));
  if (!withdrawn) log::Logger("nodepool.zk.ZooKeeper").Debug("Cleaning up: {}", withdrawn.error().message());
}

template <class Stored>
Task<> Transaction<Stored>::Withdraw() {
  co_await client_.Sync(LockDirectory());
  bool is_there = co_await LockShowsSuccess();
  if (is_there) co_await client_.Delete(taken_->path);
}

template <class Stored>
Task<bool> Transaction<Stored>::Reread() {
  zk::Result<zk::NodeData> read = co_await client_.Get(RecordKind<Stored>::Path(stored_.id));
  if (!read) co_return false;
  stored_ = Decode<Stored>(stored_.id, *read, tree_.Now());
  is_stale_ = false;
  co_return true;
}

template <class Stored>
std::vector<zk::Op> Transaction<Stored>::Operations() {
  std::vector<zk::Op> ops;
  if (lock_use_ == LockUse::kTake) {
    ops.emplace_back(zk::CreateOp{LockDirectory(), "", zk::CreateMode::kPersistent});
    ops.emplace_back(zk::CreateOp{LockDirectory() + "/" + prefix_, "", zk::CreateMode::kEphemeralSequential});
  }
  // Watchers see the changes in this order: with `fulfilled` they find the nodes unlocked (launcher.md 11).
  for (const std::string& contender : also_unlock_) ops.emplace_back(zk::DeleteOp{contender, -1});
  record_op_ = ops.size();
  data_ = ToJson(next_);
  ops.emplace_back(zk::SetOp{RecordKind<Stored>::Path(stored_.id), data_, stored_.revision.version});
  if (lock_use_ == LockUse::kKeep) ops.emplace_back(zk::CheckOp{lock_.path, -1});
  if (lock_use_ == LockUse::kGive) ops.emplace_back(zk::DeleteOp{lock_.path, -1});
  return ops;
}

template <class Stored>
void Transaction<Stored>::RequireHeld() const {
  if (lock_use_ != LockUse::kKeep && lock_use_ != LockUse::kGive) return;
  if (tree_.IsHeld(lock_)) return;
  throw Error(Verdict::kLostSession, fmt::format("{} {}: the session in which it was locked is over",
                                                 RecordKind<Stored>::kName, stored_.id));
}

template <class Stored>
Task<bool> UpdateRecord(Tree& tree, Stored& stored, std::optional<zk::HeldLock> lock,
                        std::function<Change(typename RecordKind<Stored>::Record&)> change) {
  using Update = Transaction<Stored>;
  Update update(tree, stored, std::move(change));
  if (lock) update.KeepLock(std::move(*lock));
  typename Update::Result result = co_await update.Run();
  if (result == Update::Result::kGone) {
    throw Error(Verdict::kNotFound,
                fmt::format("{} {} does not exist any more", RecordKind<Stored>::kName, stored.id));
  }
  co_return result == Update::Result::kDone;
}

template class Transaction<StoredNode>;
template class Transaction<StoredRequest>;
template class Transaction<StoredBuild>;
template class Transaction<StoredUpload>;

template Task<bool> UpdateRecord(Tree&, StoredNode&, std::optional<zk::HeldLock>,
                                 std::function<Change(Node&)>);
template Task<bool> UpdateRecord(Tree&, StoredRequest&, std::optional<zk::HeldLock>,
                                 std::function<Change(NodeRequest&)>);
template Task<bool> UpdateRecord(Tree&, StoredBuild&, std::optional<zk::HeldLock>,
                                 std::function<Change(ImageBuild&)>);
template Task<bool> UpdateRecord(Tree&, StoredUpload&, std::optional<zk::HeldLock>,
                                 std::function<Change(ImageUpload&)>);

Task<std::int32_t> MinReadyRequests::Version() {
  std::string path(paths::kMinReady);
  zk::Result<zk::NodeData> known = co_await tree_.Get(path);
  if (known) co_return known->stat.version;
  co_await tree_.Ensure(path);
  known = co_await tree_.Get(path);
  if (!known) throw Error(Verdict::kConflict, path + " was removed by another program");
  co_return known->stat.version;
}

Task<std::optional<std::vector<RequestId>>> MinReadyRequests::Create(std::vector<NodeRequest> requests,
                                                                     std::int32_t seen_version) {
  std::string path = fmt::format("{}/{}-", paths::kRequests, kMinReadyPrecedence);
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{std::string(paths::kMinReady), "", seen_version});
  for (const NodeRequest& request : requests)
    ops.emplace_back(zk::CreateOp{path, ToJson(request), zk::CreateMode::kEphemeralSequential});
  auto attempt = [&] { return tree_.client().Multi(ops); };
  zk::MultiResult result = co_await tree_.Repeat<zk::MultiResult>(attempt);
  // There has been no request yet.
  if (result.failed > 0) co_await tree_.Ensure(std::string(paths::kRequests));
  if (!result.ok()) co_return std::nullopt;
  std::vector<RequestId> ids;
  for (std::size_t i = 1; i < result.results.size(); ++i)
    ids.emplace_back(zk::BaseName(result.results[i].path));
  co_return ids;
}

}  // namespace nodepool::store
