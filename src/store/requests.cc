#include "store/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/lock_record.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

// Moves the request into the result if it was written; otherwise `locked` retains it.
Task<std::optional<LockedRequest>> KeepIfWritten(std::optional<LockedRequest>& locked,
                                                 std::function<Change(NodeRequest&)> change) {
  if (!locked) co_return std::nullopt;
  bool is_written = co_await locked->Update(std::move(change));
  if (!is_written) co_return std::nullopt;
  LockedRequest written = std::move(*locked);
  locked.reset();
  co_return written;
}

}  // namespace

Task<RequestId> Requests::Create(std::string precedence, NodeRequest request, bool is_ephemeral) {
  if (!request.event_id) request.event_id = tree_.random().UuidHex();
  std::string path = fmt::format("{}/{}-", paths::kRequests, precedence);
  zk::CreateMode mode =
      is_ephemeral ? zk::CreateMode::kEphemeralSequential : zk::CreateMode::kPersistentSequential;
  std::string created = co_await tree_.CreateSequential(std::move(path), ToJson(request), mode);
  co_return RequestId(zk::BaseName(created));
}

Task<std::optional<StoredRequest>> Requests::Read(RequestId id) {
  return ReadRecord<StoredRequest>(tree_, std::move(id));
}

Task<std::vector<RequestId>> Requests::List() {
  std::vector<RequestId> ids;
  std::vector<std::string> names = co_await tree_.Children(std::string(paths::kRequests));
  for (std::string& name : names) ids.emplace_back(std::move(name));
  std::ranges::sort(ids);
  co_return ids;
}

Task<> Requests::Delete(RequestId id) { return tree_.Delete(paths::Request(id)); }

Task<std::optional<LockedRequest>> Requests::Accept(StoredRequest seen,
                                                    std::function<Change(NodeRequest&)> change) {
  using Take = Transaction<StoredRequest>;
  Take take(tree_, seen, change);
  take.TakeLock();
  Take::Result result = co_await take.Run();
  if (result == Take::Result::kRefused && take.failed_code() == zk::Code::kNoNode) {
    co_await tree_.Ensure(std::string(paths::kRequestLocks));
    result = co_await take.Run();
  }
  if (result == Take::Result::kDone) co_return LockedRequest(tree_, std::move(seen), take.taken());
  if (result != Take::Result::kRefused) co_return std::nullopt;
  Task<std::optional<LockedRequest>> accept = AcceptLockedBefore(seen.id, std::move(change));
  co_return co_await UnlessGone(seen.id, std::move(accept));
}

// The request was locked before: the lock directory exists.
Task<std::optional<LockedRequest>> Requests::AcceptLockedBefore(RequestId id,
                                                                std::function<Change(NodeRequest&)> change) {
  auto write = [change](std::optional<LockedRequest>& locked) { return KeepIfWritten(locked, change); };
  auto unlock = [](std::optional<LockedRequest>& locked) { return locked ? locked->Unlock() : Default<>(); };
  return Bracket(TryLock(std::move(id)), write, unlock);
}

Task<std::optional<LockedRequest>> Requests::TryLock(RequestId id) {
  // The lock directory is not below the request, so it would also be created for a vanished
  // request.
  zk::Result<zk::NodeData> before = co_await tree_.Get(paths::Request(id));
  if (!before) co_return std::nullopt;
  co_await tree_.Ensure(std::string(paths::kRequestLocks));
  Task<std::optional<zk::HeldLock>> acquire = tree_.TryLock(paths::RequestLock(id));
  Task<std::optional<LockedRequest>> lock =
      LockRecord<LockedRequest, StoredRequest>(tree_, id, std::move(acquire));
  co_return co_await UnlessGone(id, std::move(lock));
}

// Awaits `locking`. nullopt as well when the request turns out to be gone; its lock directory is
// then removed, also when the task is cancelled.
Task<std::optional<LockedRequest>> Requests::UnlessGone(RequestId id,
                                                        Task<std::optional<LockedRequest>> locking) {
  auto remove = [this, id](const Failure& failure) { return RemoveLockIfGone(id, failure.verdict()); };
  return IfExists(OnFailure(std::move(locking), std::move(remove)));
}

Task<> Requests::RemoveLockIfGone(RequestId id, Verdict verdict) {
  if (verdict != Verdict::kNotFound) co_return;
  std::vector<RequestId> gone{std::move(id)};
  co_await RemoveLocks(std::move(gone));
}

Task<std::vector<RequestId>> Requests::Gone(std::vector<RequestId> ids) {
  auto attempt = [&] { return TryGone(ids); };
  co_return co_await tree_.Repeat<std::vector<RequestId>>(attempt);
}

Task<std::vector<RequestId>> Requests::TryGone(std::vector<RequestId> ids) {
  std::vector<zk::ReadOp> reads;
  for (const RequestId& id : ids) reads.push_back({zk::ReadOp::Kind::kData, paths::Request(id)});
  std::vector<zk::ReadResult> requests = co_await tree_.client().ReadMany(std::move(reads));
  std::vector<RequestId> gone;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (requests[i].code == zk::Code::kNoNode) gone.push_back(std::move(ids[i]));
  }
  co_return gone;
}

Task<std::vector<RequestId>> Requests::RemoveLocks(std::vector<RequestId> ids) {
  auto attempt = [&] { return TryRemoveLocks(ids); };
  co_return co_await tree_.Repeat<std::vector<RequestId>>(attempt);
}

Task<std::vector<RequestId>> Requests::TryRemoveLocks(std::vector<RequestId> ids) {
  std::vector<RequestId> removed;
  while (!ids.empty()) {
    std::vector<zk::Op> ops;
    for (const RequestId& id : ids) ops.emplace_back(zk::DeleteOp{paths::RequestLock(id), -1});
    zk::MultiResult answer = co_await tree_.client().Multi(std::move(ops));
    if (answer.ok()) {
      removed.insert(removed.end(), ids.begin(), ids.end());
      co_return removed;
    }
    // Another process contends: the last one to leave, or the sweep, removes it.
    auto refused = ids.begin() + answer.failed;
    if (answer.code() == zk::Code::kNoNode) removed.push_back(*refused);
    ids.erase(refused);
  }
  co_return removed;
}

}  // namespace nodepool::store
