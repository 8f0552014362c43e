#include "zk/testing/memory_link.h"

#include "base/error.h"

namespace nodepool::testing {

using namespace zk;

namespace {

std::exception_ptr SessionGone() {
  return std::make_exception_ptr(Error(Verdict::kLostSession, "the ZooKeeper session is over"));
}

}  // namespace

void MemoryZk::Ensemble::Announce(const WatchEvent& change) {
  for (const auto& [connection_id, event] : watches.Trigger(change)) {
    auto link = connections.find(connection_id);
    if (link != connections.end()) link->second->Receive(event);
  }
}

MemoryZk::Link::~Link() {
  Leave();
  FailAll(SessionGone(), true);
}

auto MemoryZk::Link::Guarded(void (Link::*method)()) -> Action {
  return [weak = weak_from_this(), attempt = attempt_, method] {
    auto self = weak.lock();
    if (self && self->attempt_ == attempt) (self.get()->*method)();
  };
}

void MemoryZk::Link::Send(Call call) {
  if (state_ == SessionState::kLost || state_ == SessionState::kClosed) return call.fail(SessionGone());
  if (!IsConnected()) {
    unsent_.push_back(std::move(call));
    return;
  }
  ++(call.is_write ? counters_.writes : counters_.reads);
  sent_.push_back(std::move(call));
  ensemble_.After(HalfWay(), Guarded(&Link::ExecuteNext));
}

void MemoryZk::Link::ExecuteNext() {
  if (sent_.empty()) return;
  Call call = std::move(sent_.front());
  sent_.pop_front();
  Message answer;
  if (ensemble_.tree.IsOpen(session_.id)) {
    answer.deliver = call.execute();
  } else {
    auto fail = std::make_shared<OnError>(std::move(call.fail));
    answer.deliver = [fail] { (*fail)(SessionGone()); };
    call.fail = [fail](std::exception_ptr error) { (*fail)(error); };
  }
  answer.deliver = [this, zxid = ensemble_.tree.last_zxid(), deliver = std::move(answer.deliver)]() mutable {
    seen_zxid_ = zxid;
    deliver();
  };
  answer.fail = std::move(call.fail);
  Post(std::move(answer));
}

void MemoryZk::Link::Receive(const WatchEvent& event) {
  Message message;
  message.deliver = [this, event] { table_->Dispatch(event); };
  Post(std::move(message));
}

void MemoryZk::Link::Post(Message message) {
  inbox_.push_back(std::move(message));
  ensemble_.After(HalfWay(), Guarded(&Link::DeliverNext));
}

void MemoryZk::Link::DeliverNext() {
  if (inbox_.empty()) return;
  Message message = std::move(inbox_.front());
  inbox_.pop_front();
  message.deliver();
}

void MemoryZk::Link::FailAll(std::exception_ptr error, bool also_unsent) {
  for (Message& message : std::exchange(inbox_, {})) {
    if (message.fail) message.fail(error);
  }
  for (Call& call : std::exchange(sent_, {})) call.fail(error);
  if (!also_unsent) return;
  for (Call& call : std::exchange(unsent_, {})) call.fail(error);
}

void MemoryZk::Link::Connect() {
  ++attempt_;
  ensemble_.After(ensemble_.options.latency, Guarded(&Link::Establish));
}

void MemoryZk::Link::Establish() {
  if (session_.id != 0 && !ensemble_.tree.IsOpen(session_.id)) return Lose();
  if (session_.id == 0) StartSession();
  ensemble_.KeepAlive(session_.id);
  connection_ = ++ensemble_.last_connection;
  ensemble_.connections[connection_] = this;
  auto missed = ensemble_.watches.Restore(ensemble_.tree, connection_, seen_zxid_, table_->Paths());
  state_ = SessionState::kConnected;
  for (const WatchEvent& event : missed) Receive(event);
  for (Call& call : std::exchange(unsent_, {})) Send(std::move(call));
  Enter(SessionState::kConnected);
}

void MemoryZk::Link::StartSession() {
  session_.id = ++ensemble_.last_session;
  ++session_.generation;
  ensemble_.tree.OpenSession(session_.id);
}

// Ends the connection at the servers' side; the session continues until its time-out.
void MemoryZk::Link::Leave() {
  ++attempt_;
  if (connection_ == 0) return;
  ensemble_.watches.RemoveAll(connection_);
  ensemble_.connections.erase(connection_);
  connection_ = 0;
  if (ensemble_.tree.IsOpen(session_.id)) ensemble_.ExpireLater(session_.id);
}

void MemoryZk::Link::Disconnect(UnderWay under_way) {
  if (is_cut_ || state_ == SessionState::kClosed) return;
  is_cut_ = true;
  if (under_way == UnderWay::kDone) {
    while (!sent_.empty()) ExecuteNext();
  }
  Leave();
  if (!IsConnected()) return;
  FailAll(std::make_exception_ptr(Error(Verdict::kRetry, "the connection to ZooKeeper was lost")), false);
  Enter(SessionState::kSuspended);
}

void MemoryZk::Link::Reconnect() {
  if (!is_cut_ || state_ == SessionState::kClosed) return;
  is_cut_ = false;
  Connect();
}

void MemoryZk::Link::Expire() {
  ensemble_.KeepAlive(session_.id);
  ensemble_.tree.CloseSession(session_.id);
  if (IsConnected()) ensemble_.After(HalfWay(), Guarded(&Link::Lose));
}

void MemoryZk::Link::LoseWatches() {
  protocol::WatchPaths paths = table_->Paths();
  for (const auto* list : {&paths.data, &paths.exist, &paths.child, &paths.persistent, &paths.recursive}) {
    for (const std::string& path : *list) ensemble_.watches.Remove(path, connection_, true, true);
  }
}

void MemoryZk::Link::Lose() {
  Leave();
  state_ = SessionState::kLost;
  FailAll(SessionGone(), true);
  table_->DropOneShots();
  Enter(SessionState::kLost);
  if (state_ != SessionState::kLost) return;  // a listener closed the client
  session_.id = 0;
  Enter(SessionState::kConnecting);
  Connect();
}

void MemoryZk::Link::Close() {
  if (state_ == SessionState::kClosed) return;
  state_ = SessionState::kClosed;
  if (connection_ != 0) ensemble_.tree.CloseSession(session_.id);
  Leave();
  FailAll(SessionGone(), true);
  table_->DropOneShots();
  Enter(SessionState::kClosed);
}

void MemoryZk::Link::Enter(SessionState state) {
  state_ = state;
  auto listeners = listeners_;
  for (const auto& listener : listeners) {
    if (*listener && state_ == state) (*listener)(state);
  }
}

Subscription MemoryZk::Link::Listen(std::function<void(SessionState)> listener) {
  auto entry = std::make_shared<std::function<void(SessionState)>>(std::move(listener));
  listeners_.push_back(entry);
  return Subscription([weak = weak_from_this(), entry] {
    if (auto self = weak.lock()) self->listeners_.remove(entry);
    *entry = nullptr;
  });
}

}  // namespace nodepool::testing
