#include "launcher/caches.h"

namespace nodepool::launcher {

Caches::Caches(Loop& loop, zk::Client& client)
    : nodes(loop, client),
      requests(loop, client),
      request_locks(loop, client),
      images(loop, client),
      jobs(loop, client),
      leases(loop, client),
      pauses(loop, client),
      registry(loop, client),
      tasks_(loop, log::Logger("nodepool.NodePool")) {}

Task<> Caches::Start() {
  co_await registry.Start();
  nodes.Start();
  requests.Start();
  request_locks.Start();
  images.Start();
  jobs.Start();
  leases.Start();
  pauses.Start();
}

bool Caches::synced() const {
  return nodes.synced() && requests.synced() && images.synced() && jobs.synced() && leases.synced() &&
         pauses.synced() && registry.synced();
}

// One cache may start again while another one is waited for.
Task<> Caches::WaitSynced() {
  co_await request_locks.WaitSynced();
  while (!synced()) {
    co_await nodes.WaitSynced();
    co_await requests.WaitSynced();
    co_await images.WaitSynced();
    co_await jobs.WaitSynced();
    co_await leases.WaitSynced();
    co_await pauses.WaitSynced();
    co_await registry.WaitSynced();
  }
}

bool Caches::SyncedOrWake(WakeLoop& loop) {
  if (synced()) return true;
  bool is_waiting = !to_wake_.empty();
  to_wake_.insert(&loop);
  if (!is_waiting) tasks_.Spawn("wait for the caches", WakeWhenSynced());
  return false;
}

Task<> Caches::WakeWhenSynced() {
  co_await WaitSynced();
  for (WakeLoop* loop : std::exchange(to_wake_, {})) loop->Wake();
}

Task<> Caches::Stop() {
  co_await tasks_.Stop();
  co_await pauses.Stop();
  co_await leases.Stop();
  co_await jobs.Stop();
  co_await images.Stop();
  co_await request_locks.Stop();
  co_await requests.Stop();
  co_await nodes.Stop();
  co_await registry.Stop();
}

}  // namespace nodepool::launcher
