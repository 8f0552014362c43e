#pragma once

#include <functional>
#include <map>
#include <memory>

#include "async/task_group.h"
#include "launcher/requests/request_run.h"

namespace nodepool::launcher {

// A pool of this launcher with the requests that it has accepted.
class PoolWorker {
 public:
  PoolWorker(Context& context, const ProviderManager& providers, const ClusterView& cluster,
             std::shared_ptr<const driver::ProviderConfig> provider_config,
             std::shared_ptr<const driver::PoolConfig> config, const std::string& fqdn);
  ~PoolWorker();  // call Stop() first

  // Announces the pool; ends when its component record is written.
  Task<> Start();
  // Gives accepted requests back and removes the component record.
  Task<> Stop();
  // The pool is no longer configured: removes its component record at once, begins nothing new and ends when
  // running launches have finished and no request is held (D-24).
  Task<> Drain();
  // Puts another configuration in force and checks accepted requests against it.
  void Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                 std::shared_ptr<const driver::PoolConfig> config);
  // The locks of all accepted requests are gone: drops the requests.
  void SessionLost();

  const Pool& pool() const { return pool_; }
  const PoolKey& key() const { return pool_.key(); }
  // Whether Start() has ended.
  bool is_started() const { return is_started_; }

  // `standing` is that of the decision; `ended` is called when the request is no longer worked on.
  void Accept(store::StoredRequest request, sched::ServiceOrder order, sched::Standing standing,
              std::function<void()> ended);
  // As the pool's (pool.h).
  void AnnounceFaults() { pool_.AnnounceFaults(); }
  // Lets waiting requests plan again, in service order.
  void CapacityChanged() { pool_.waiting().WakeAll(); }
  // Lets all requests plan again: the provider came up.
  void ProviderChanged();
  // The client deleted the request.
  void RequestGone(const RequestId& id);

  std::size_t request_count() const { return runs_.size(); }
  // The run of an accepted request, or null.
  const RequestRun* FindRun(const RequestId& id) const;

 private:
  Task<> RunToEnd(std::shared_ptr<RequestRun> run, std::function<void()> ended);

  Context& context_;
  Pool pool_;
  UnusedNodes unused_nodes_;
  log::Logger logger_;
  std::map<RequestId, std::shared_ptr<RequestRun>> runs_;
  bool is_started_ = false;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
