#include "sim/crashable_zk.h"

#include <boost/asio/co_spawn.hpp>

#include "base/error.h"

namespace nodepool::sim {
namespace {

using testing::FaultyZk;
using testing::MemoryZk;

template <class T>
Task<T> Dead() {
  throw Error(Verdict::kLostSession, "the process is dead");
  co_return T();
}

template <>
Task<> Dead<void>() {
  throw Error(Verdict::kLostSession, "the process is dead");
  co_return;
}

}  // namespace

CrashableZk::CrashableZk(Loop& loop, MemoryZk& ensemble, Random& faults)
    : loop_(loop),
      ensemble_(ensemble),
      faults_(faults),
      inner_(ensemble.Connect()),
      faulty_(*inner_),
      session_(faulty_.OnSession([this](zk::SessionState state) { OnSessionState(state); })) {}

void CrashableZk::Kill(MemoryZk::UnderWay under_way) {
  if (is_dead_) return;
  last_session_ = faulty_.session();
  is_dead_ = true;
  die_ = nullptr;
  if (faulty_.state() == zk::SessionState::kClosed) return;
  ensemble_.Disconnect(*inner_, under_way);
  // Without a connection this sends nothing to the servers; it ends what waits for a connection.
  boost::asio::co_spawn(loop_.context(), inner_->Close(), [](std::exception_ptr) {});
}

void CrashableZk::Disconnect(MemoryZk::UnderWay under_way) {
  if (!is_dead_) ensemble_.Disconnect(*inner_, under_way);
}

void CrashableZk::Reconnect() {
  if (!is_dead_) ensemble_.Reconnect(*inner_);
}

void CrashableZk::ExpireSession() {
  if (!is_dead_ && session().id != 0) ensemble_.ExpireSession(*inner_);
}

void CrashableZk::SetFaultRate(double rate) {
  if (rate > 0) {
    faulty_.FailRandomly(rate, faults_);
  } else {
    faulty_.FailNever();
  }
}

void CrashableZk::CallAfter(int operations, std::function<void()> die) {
  operations_left_ = operations;
  die_ = std::move(die);
}

// The operation at which the process dies is sent; Kill() decides whether it arrives.
template <class Start>
auto CrashableZk::Send(Start start) -> decltype(start()) {
  if (is_dead_) return Dead<typename decltype(start())::value_type>();
  faulty_.ClearCalls();
  auto under_way = start();
  if (die_ && operations_left_-- <= 0) std::exchange(die_, nullptr)();
  return under_way;
}

void CrashableZk::OnSessionState(zk::SessionState state) {
  if (is_dead_) return;
  Listeners listeners = *listeners_;
  for (const auto& listener : listeners) {
    if (*listener) (*listener)(state);
  }
}

Subscription CrashableZk::OnSession(std::function<void(zk::SessionState)> listener) {
  auto entry = std::make_shared<std::function<void(zk::SessionState)>>(std::move(listener));
  listeners_->push_back(entry);
  return Subscription([listeners = listeners_, entry] {
    listeners->remove(entry);
    *entry = nullptr;
  });
}

zk::SessionState CrashableZk::state() const { return is_dead_ ? zk::SessionState::kClosed : faulty_.state(); }

Task<> CrashableZk::Close() {
  if (!is_dead_) co_await faulty_.Close();
}

Task<zk::Result<zk::Created>> CrashableZk::Create(std::string path, std::string data, zk::CreateMode mode) {
  return Send([&] { return faulty_.Create(path, data, mode); });
}

Task<zk::Result<zk::NodeData>> CrashableZk::Get(std::string path) {
  return Send([&] { return faulty_.Get(path); });
}

Task<zk::Result<zk::Stat>> CrashableZk::Exists(std::string path) {
  return Send([&] { return faulty_.Exists(path); });
}

Task<zk::Result<zk::Stat>> CrashableZk::Set(std::string path, std::string data, std::int32_t version) {
  return Send([&] { return faulty_.Set(path, data, version); });
}

Task<zk::Result<>> CrashableZk::Delete(std::string path, std::int32_t version) {
  return Send([&] { return faulty_.Delete(path, version); });
}

Task<zk::Result<zk::Children>> CrashableZk::GetChildren(std::string path) {
  return Send([&] { return faulty_.GetChildren(path); });
}

Task<zk::MultiResult> CrashableZk::Multi(std::vector<zk::Op> ops) {
  return Send([&] { return faulty_.Multi(ops); });
}

Task<> CrashableZk::Sync(std::string path) {
  return Send([&] { return faulty_.Sync(path); });
}

Task<zk::Result<zk::NodeData>> CrashableZk::GetAndWatch(std::string path, zk::Watcher watcher) {
  return Send([&] { return faulty_.GetAndWatch(path, watcher); });
}

Task<zk::Result<zk::Stat>> CrashableZk::ExistsAndWatch(std::string path, zk::Watcher watcher) {
  return Send([&] { return faulty_.ExistsAndWatch(path, watcher); });
}

Task<zk::Result<zk::Children>> CrashableZk::GetChildrenAndWatch(std::string path, zk::Watcher watcher) {
  return Send([&] { return faulty_.GetChildrenAndWatch(path, watcher); });
}

Task<Subscription> CrashableZk::AddWatch(std::string path, zk::WatchMode mode, zk::Watcher watcher) {
  return Send([&] { return faulty_.AddWatch(path, mode, watcher); });
}

}  // namespace nodepool::sim
