#pragma once

#include <map>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "store/cache/cached_records.h"
#include "store/store.h"

namespace nodepool::bench {

// When things happened to one request, in seconds since the run began.
struct Timeline {
  double created = 0;
  double answered = 0;  // its creation, by the server
  double fulfilled = 0;
  double returned = 0;
  bool is_failed = false;
};

// What becomes of the nodes of a fulfilled request.
enum class Afterwards {
  kUse,        // as Zuul does: in-use, used, unlocked; the launcher deletes them
  kKeepReady,  // once all requests have theirs, they are free again, for other requests
  kHold,
  kNothing,  // request and nodes stay as they are
};

struct Load {
  int count = 1;    // of requests
  double rate = 0;  // so many a second; 0: all at once
  std::vector<LabelName> labels;
  Afterwards afterwards = Afterwards::kUse;
};

// A consumer that behaves as Zuul does towards every request: creates it, waits,
// locks the nodes, deletes the request, sets the nodes in-use, then used, unlocks.
class LoadClient {
 public:
  LoadClient(Loop& loop, zk::Client& client, Random& random);
  ~LoadClient();  // call Stop() first

  Task<> Start();
  Task<> Stop();

  // Ends when all requests are over.
  Task<std::vector<Timeline>> Run(Load load);

 private:
  Task<> One(const Load& load, Timeline& timeline);
  Task<NodeRequest> AwaitOutcome(RequestId id);
  Task<> Finish(RequestId request, std::vector<NodeId> nodes, Afterwards afterwards);
  Task<> Leave(store::LockedNode& node, Afterwards afterwards);
  double Elapsed() const;

  Loop& loop_;
  store::Store store_;
  store::RequestCache requests_;
  std::map<RequestId, std::shared_ptr<OneShot<NodeRequest>>> waiting_;
  Subscription registration_;
  TaskGroup tasks_;
  SteadyTime start_{};
  int without_nodes_ = 0;  // requests of this run
  Event all_served_{"all requests to be served"};
};

}  // namespace nodepool::bench
