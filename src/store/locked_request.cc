#include "store/locked_request.h"

#include <fmt/format.h>

#include "store/transaction.h"

namespace nodepool::store {

using Write = Transaction<StoredRequest>;

Task<bool> LockedRequest::UpdateAndUnlock(std::function<Change(NodeRequest&)> change) {
  Write write(tree(), stored(), std::move(change));
  write.GiveLock(lock());
  Write::Result result = co_await write.Run();
  if (result == Write::Result::kDone) {
    SetUnlocked();
    co_return true;
  }
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
    contenders.push_back(node->lock().path);
  }
  Write write(tree(), stored(), std::move(change));
  write.AlsoUnlock(std::move(contenders));
  write.GiveLock(lock());
  Write::Result result = co_await write.Run();
  if (result == Write::Result::kRefused) {
    throw Error(Verdict::kConflict, fmt::format("request {}: the lock {} of one of its nodes is gone", id(),
                                                write.failed_path()));
  }
  if (result != Write::Result::kDone) co_return false;
  for (LockedNode* node : nodes) node->SetUnlocked();
  SetUnlocked();
  co_return true;
}

}  // namespace nodepool::store
