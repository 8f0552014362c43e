#pragma once

#include "store/decode.h"
#include "store/repeat.h"
#include "store/store.h"

namespace nodepool::store {

template <class Stored, class Id>
Task<std::optional<Stored>> Store::ReadLocked(Id id, zk::HeldLock lock) {
  std::exception_ptr fault;
  try {
    co_await boost::asio::this_coro::throw_if_cancelled(true);
    zk::Result<zk::NodeData> read = co_await Get(RecordKind<Stored>::Path(id));
    if (read) co_return Decode<Stored>(id, *read, loop_.Now());
  } catch (...) {
    fault = std::current_exception();
  }
  co_await StayAwake();
  co_await Shielded(locker_.Release(std::move(lock)));
  if (fault) std::rethrow_exception(fault);
  co_return std::nullopt;
}

}  // namespace nodepool::store
