#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "store/cache/request_cache.h"
#include "store/store.h"

namespace nodepool::bench {

// When things happened to one request, in seconds since the run began.
struct Timeline {
  double created = 0;
  double fulfilled = 0;
  double returned = 0;
  bool is_failed = false;
};

// A consumer that behaves as Zuul does towards every request: creates it, waits,
// locks the nodes, deletes the request, sets the nodes in-use, then used, unlocks.
class LoadClient {
 public:
  LoadClient(Loop& loop, zk::Client& client, Random& random);
  ~LoadClient();  // call Stop() first

  Task<> Start();
  Task<> Stop();

  // Runs `count` requests for one node of `label`, all at once (`rate` 0) or so many
  // a second; ends when all are over.
  Task<std::vector<Timeline>> Run(int count, double rate, LabelName label);

 private:
  Task<> One(LabelName label, Timeline& timeline);
  Task<NodeRequest> AwaitOutcome(RequestId id);
  double Elapsed() const;

  Loop& loop_;
  store::Store store_;
  store::RequestCache requests_;
  std::map<RequestId, std::shared_ptr<OneShot<NodeRequest>>> waiting_;
  Subscription registration_;
  TaskGroup tasks_;
  SteadyTime start_{};
};

}  // namespace nodepool::bench
