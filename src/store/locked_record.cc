#include "store/locked_record.h"

#include "store/transaction.h"

namespace nodepool::store {

template <class Stored>
Task<bool> LockedRecord<Stored>::Update(std::function<Change(Record&)> change) {
  return UpdateRecord<Stored>(*tree_, stored_, lock_, std::move(change));
}

template <class Stored>
Task<> LockedRecord<Stored>::Unlock() {
  if (is_unlocked_) co_return;
  co_await tree_->Unlock(lock_);
  is_unlocked_ = true;
}

template class LockedRecord<StoredNode>;
template class LockedRecord<StoredRequest>;

}  // namespace nodepool::store
