#pragma once

#include <deque>
#include <map>

#include "async/loop.h"
#include "base/subscription.h"
#include "store/cache/request_cache.h"

namespace nodepool::launcher {

// The requests that have failed, whoever declined them, and that their clients have deleted since, for an
// operator who asks why: those of the last hour, at most a thousand. Those for min-ready are not kept; they
// fail again and again while a cloud is full.
class FailedRequests {
 public:
  // Both outlive this.
  FailedRequests(const Loop& loop, store::RequestCache& requests);

  // By id; `requestor_data` and unknown keys but the reasons are left out.
  const std::map<RequestId, store::StoredRequest>& Deleted();

 private:
  struct Deletion {
    SteadyTime at;
    RequestId id;
  };

  void Keep(const store::StoredRequest& request);
  void DropOld();

  const Loop& loop_;
  std::map<RequestId, store::StoredRequest> requests_;
  std::deque<Deletion> deletions_;  // of `requests_`, oldest first
  Subscription subscription_;
};

}  // namespace nodepool::launcher
