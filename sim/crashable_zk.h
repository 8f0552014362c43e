#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/subscription.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::sim {

// A process's connection to the simulated ensemble: it can be cut, made unreliable,
// and it can die together with its process. Once it is dead, nothing from the process reaches the servers;
// its session expires.
class CrashableZk : public zk::Client {
 public:
  // `loop` is the ensemble's. All outlive this; after Kill() the loop runs once more
  // before this is destroyed.
  CrashableZk(Loop& loop, testing::MemoryZk& ensemble, Random& faults);

  // The process has crashed. `under_way` says whether what it has sent is carried out. Its further operations
  // fail with kLostSession; its listeners are not notified.
  void Kill(testing::MemoryZk::UnderWay under_way);
  bool is_dead() const { return is_dead_; }

  void Disconnect(testing::MemoryZk::UnderWay under_way);
  void Reconnect();
  void ExpireSession();
  // The fraction of operations that fail although the connection holds.
  void SetFaultRate(double rate);

  // Calls `die` after `operations` more were sent; it may call Kill().
  void CallAfter(int operations, std::function<void()> die);

  Task<zk::Result<zk::Created>> Create(std::string path, std::string data, zk::CreateMode mode) override;
  Task<zk::Result<zk::NodeData>> Get(std::string path) override;
  Task<zk::Result<zk::Stat>> Exists(std::string path) override;
  Task<zk::Result<zk::Stat>> Set(std::string path, std::string data, std::int32_t version) override;
  Task<zk::Result<>> Delete(std::string path, std::int32_t version) override;
  Task<zk::Result<zk::Children>> GetChildren(std::string path) override;
  Task<zk::MultiResult> Multi(std::vector<zk::Op> ops) override;
  Task<> Sync(std::string path) override;
  Task<zk::Result<zk::NodeData>> GetAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Stat>> ExistsAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Children>> GetChildrenAndWatch(std::string path, zk::Watcher watcher) override;
  Task<Subscription> AddWatch(std::string path, zk::WatchMode mode, zk::Watcher watcher) override;
  Subscription OnSession(std::function<void(zk::SessionState)> listener) override;
  zk::SessionState state() const override;
  zk::Session session() const override { return is_dead_ ? last_session_ : faulty_.session(); }
  const zk::OwnWrites& own_writes() const override { return faulty_.own_writes(); }
  Task<> Close() override;

 private:
  using Listeners = std::list<std::shared_ptr<std::function<void(zk::SessionState)>>>;

  template <class Start>
  auto Send(Start start) -> decltype(start());
  void OnSessionState(zk::SessionState state);

  Loop& loop_;
  testing::MemoryZk& ensemble_;
  Random& faults_;
  std::unique_ptr<zk::Client> inner_;
  testing::FaultyZk faulty_;
  bool is_dead_ = false;
  zk::Session last_session_;
  int operations_left_ = -1;
  std::function<void()> die_;
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
  Subscription session_;
};

}  // namespace nodepool::sim
