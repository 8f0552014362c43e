#pragma once

#include "store/records.h"

namespace nodepool::web {

// When the request was made, by its client's clock or else by ZooKeeper's.
inline WallTime CreationOf(const store::StoredRequest& request) {
  return request.record.created_time.value_or(request.revision.created);
}

}  // namespace nodepool::web
