#include <fmt/format.h>

#include "store/transaction.h"

namespace nodepool::store {

using Write = Transaction<StoredRequest>;

bool LockedRequest::is_held() const { return store_->IsHeld(lock_); }

Task<bool> LockedRequest::Update(std::function<Change(NodeRequest&)> change) {
  Write write(store_->loop_, store_->client_, store_->random_, request_, std::move(change));
  write.KeepLock(lock_);
  Write::Outcome outcome = co_await write.Run();
  if (outcome == Write::Outcome::kGone) {
    throw Error(Verdict::kNotFound, fmt::format("request {} does not exist any more", request_.id));
  }
  co_return outcome == Write::Outcome::kDone;
}

Task<> LockedRequest::Unlock() { co_await store_->locker_.Release(lock_); }

Task<bool> LockedRequest::UpdateAndUnlock(std::function<Change(NodeRequest&)> change) {
  Write write(store_->loop_, store_->client_, store_->random_, request_, std::move(change));
  write.GiveLock(lock_);
  Write::Outcome outcome = co_await write.Run();
  if (outcome == Write::Outcome::kDone) co_return true;
  co_await Unlock();
  co_return false;
}

Task<bool> LockedRequest::Fulfil(std::vector<LockedNode*> nodes, std::function<Change(NodeRequest&)> change) {
  std::vector<std::string> contenders;
  for (const LockedNode* node : nodes) {
    if (!node->is_held()) {
      throw Error(Verdict::kLostSession,
                  fmt::format("node {}: the session in which it was locked is over", node->id()));
    }
    contenders.push_back(node->lock_.path);
  }
  Write write(store_->loop_, store_->client_, store_->random_, request_, std::move(change));
  write.AlsoUnlock(std::move(contenders));
  write.GiveLock(lock_);
  Write::Outcome outcome = co_await write.Run();
  if (outcome == Write::Outcome::kRefused) {
    throw Error(Verdict::kConflict, fmt::format("request {}: the lock {} of one of its nodes is gone",
                                                request_.id, write.failed_path()));
  }
  co_return outcome == Write::Outcome::kDone;
}

}  // namespace nodepool::store
