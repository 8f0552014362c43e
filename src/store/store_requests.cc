#include <fmt/format.h>

#include <algorithm>

#include "store/read_locked.h"
#include "store/transaction.h"

namespace nodepool::store {
namespace {

Task<> RemoveLockOf(Store& store, RequestId id) { co_await store.RemoveRequestLock(id); }

Task<> Leave(Store& store, LockedRequest& locked, bool is_gone) {
  co_await locked.Unlock();
  if (is_gone) co_await store.RemoveRequestLock(locked.id());
}

}  // namespace

Task<RequestId> Store::CreateRequest(std::string precedence, NodeRequest request, bool is_ephemeral) {
  if (!request.event_id) request.event_id = random_.UuidHex();
  std::string path = fmt::format("{}/{}-", paths::kRequests, precedence);
  zk::CreateMode mode =
      is_ephemeral ? zk::CreateMode::kEphemeralSequential : zk::CreateMode::kPersistentSequential;
  std::string created = co_await CreateSequential(std::move(path), ToJson(request), mode);
  co_return RequestId(zk::BaseName(created));
}

Task<std::optional<StoredRequest>> Store::ReadRequest(RequestId id) {
  zk::Result<zk::NodeData> read = co_await Get(paths::Request(id));
  if (!read) co_return std::nullopt;
  co_return Decode<StoredRequest>(id, *read, loop_.Now());
}

Task<std::vector<RequestId>> Store::ListRequests() {
  std::vector<RequestId> ids;
  std::vector<std::string> names = co_await Children(std::string(paths::kRequests));
  for (std::string& name : names) ids.emplace_back(std::move(name));
  std::ranges::sort(ids);
  co_return ids;
}

Task<> Store::DeleteRequest(RequestId id) { co_await Delete(paths::Request(id)); }

Task<std::optional<LockedRequest>> Store::AcceptRequest(StoredRequest seen,
                                                        std::function<Change(NodeRequest&)> change) {
  using Take = Transaction<StoredRequest>;
  Take take(loop_, client_, random_, seen, change);
  take.TakeLock();
  Take::Outcome outcome = co_await take.Run();
  if (outcome == Take::Outcome::kRefused && take.failed_code() == zk::Code::kNoNode) {
    co_await Ensure(std::string(paths::kRequestLocks));
    outcome = co_await take.Run();
  }
  if (outcome == Take::Outcome::kDone) co_return LockedRequest(*this, std::move(seen), take.taken());
  if (outcome != Take::Outcome::kRefused) co_return std::nullopt;

  // Somebody locked the request before: the directory exists.
  std::optional<LockedRequest> locked = co_await TryLockRequest(seen.id);
  if (!locked) co_return std::nullopt;
  std::exception_ptr fault;
  try {
    bool is_written = co_await locked->Update(std::move(change));
    if (is_written) co_return locked;
  } catch (...) {
    fault = std::current_exception();
  }
  bool is_gone = fault && VerdictOf(fault) == Verdict::kNotFound;
  Task<> leave = Leave(*this, *locked, is_gone);
  co_await StayAwake();
  co_await Shielded(std::move(leave));
  if (fault && !is_gone) std::rethrow_exception(fault);
  co_return std::nullopt;
}

Task<std::optional<LockedRequest>> Store::TryLockRequest(RequestId id) {
  // The lock directory lies elsewhere, so it would be made for a vanished request too.
  zk::Result<zk::NodeData> before = co_await Get(paths::Request(id));
  if (!before) co_return std::nullopt;
  co_await Ensure(std::string(paths::kRequestLocks));
  std::optional<zk::HeldLock> lock;
  try {
    lock = co_await locker_.TryAcquire(paths::RequestLock(id));
  } catch (const Error& error) {
    if (error.verdict() != Verdict::kNotFound) throw;
  }
  if (!lock) co_return std::nullopt;
  co_await StayAwake();
  std::optional<StoredRequest> request = co_await ReadLocked<StoredRequest>(id, *lock);
  if (request) co_return LockedRequest(*this, std::move(*request), std::move(*lock));
  Task<> remove = RemoveLockOf(*this, id);
  co_await StayAwake();
  co_await Shielded(std::move(remove));
  co_return std::nullopt;
}

Task<bool> Store::RemoveRequestLock(RequestId id) {
  zk::Result<zk::NodeData> request = co_await Get(paths::Request(id));
  if (request) co_return false;
  try {
    co_await Delete(paths::RequestLock(id));
  } catch (const Error& error) {
    // Somebody contends; whoever leaves last, or the sweep, removes it.
    if (error.verdict() != Verdict::kConflict) throw;
    co_return false;
  }
  co_return true;
}

}  // namespace nodepool::store
