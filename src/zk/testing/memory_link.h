#pragma once

#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "async/event.h"
#include "zk/testing/memory_zk.h"
#include "zk/tree/server_watches.h"
#include "zk/wire/wire_session.h"

namespace nodepool::testing {

// The state that all clients share.
struct MemoryZk::Ensemble {
  using Action = std::move_only_function<void()>;

  Ensemble(Loop& loop, MemoryZkOptions options) : loop(loop), options(options) {
    tree.OnChange([this](const zk::DataTree::Change& change) {
      if (on_write) on_write(writer, change.event);
      Announce(change.event);
    });
  }
  ~Ensemble() {
    for (auto& [session, timer] : expiries) loop.clock().CancelTimer(timer);
  }

  void Announce(const zk::WatchEvent& change);

  // Does `action` after `delay`, in the order of the calls for equal delays.
  void After(Duration delay, Action action) {
    if (options.jitter > Duration(0)) {
      delay += Duration(options.random->Below(static_cast<std::uint64_t>(options.jitter.count())));
    }
    if (delay.count() == 0) {
      boost::asio::post(loop.context(), std::move(action));
    } else {
      loop.clock().CallAt(loop.SteadyNow() + delay, std::move(action));
    }
  }

  void ExpireLater(std::int64_t session) {
    expiries[session] = loop.clock().CallAt(loop.SteadyNow() + options.session_timeout, [this, session] {
      expiries.erase(session);
      tree.CloseSession(session);
    });
  }
  void KeepAlive(std::int64_t session) {
    auto timer = expiries.find(session);
    if (timer == expiries.end()) return;
    loop.clock().CancelTimer(timer->second);
    expiries.erase(timer);
  }

  Loop& loop;
  MemoryZkOptions options;
  zk::DataTree tree;
  zk::ServerWatches watches;
  std::map<zk::ServerWatches::ConnectionId, Link*> connections;
  std::map<const zk::Client*, std::shared_ptr<Link>> clients;
  std::map<std::int64_t, Clock::TimerId> expiries;
  WriteListener on_write;
  std::int64_t writer = 0;  // the session whose transaction is being carried out
  zk::ServerWatches::ConnectionId last_connection = 0;
  std::int64_t last_session = 0x1000;
};

// A client's end of a connection. Shared with the actions that are in flight, which do nothing once
// the client is destroyed.
class MemoryZk::Link : public std::enable_shared_from_this<Link> {
 public:
  using Action = Ensemble::Action;

  explicit Link(Ensemble& ensemble) : ensemble_(ensemble) {}
  ~Link();

  // `run` works on the tree at the servers, `finish` converts its outcome into the caller's answer
  // at the client.
  template <class T, class Run, class Finish>
  Task<T> Submit(bool is_write, Run run, Finish finish) {
    auto answer = std::make_shared<OneShot<T>>();
    Call call;
    call.is_write = is_write;
    call.execute = [answer, run = std::move(run), finish = std::move(finish)]() mutable -> Action {
      try {
        return [answer, outcome = run(), finish = std::move(finish)]() mutable {
          answer->Set(finish(std::move(outcome)));
        };
      } catch (...) {
        return [answer, error = std::current_exception()] { answer->Fail(error); };
      }
    };
    call.fail = [answer](std::exception_ptr error) { answer->Fail(error); };
    Send(std::move(call));
    return TakeFrom(std::move(answer));
  }

  void Connect();
  void Disconnect(UnderWay under_way);
  void Reconnect();
  void Expire();
  void LoseWatches();
  void Close();
  void Receive(const zk::WatchEvent& event);

  Subscription Listen(std::function<void(zk::SessionState)> listener);

  Ensemble& ensemble() { return ensemble_; }
  zk::WatchTable& table() { return *table_; }
  zk::ServerWatches::ConnectionId connection() const { return connection_; }
  zk::SessionState state() const { return state_; }
  zk::Session session() const { return session_; }
  Counters counters() const { return counters_; }

 private:
  using OnError = std::move_only_function<void(std::exception_ptr)>;

  // An operation on its way to the servers.
  struct Call {
    bool is_write;
    // At the servers; returns what the client does with the answer.
    std::move_only_function<Action()> execute;
    OnError fail;
  };

  // Something on its way to the client: an answer, or a watch event (no `fail`).
  struct Message {
    Action deliver;
    OnError fail;
  };

  template <class T>
  static Task<T> TakeFrom(std::shared_ptr<OneShot<T>> answer) {
    T value = co_await answer->Take();
    co_return std::move(value);
  }

  bool IsConnected() const { return state_ == zk::SessionState::kConnected; }
  Duration HalfWay() const { return ensemble_.options.latency / 2; }

  void Send(Call call);
  void ExecuteNext();
  void Post(Message message);
  void DeliverNext();
  void FailAll(std::exception_ptr error, bool also_unsent);
  void Establish();
  void StartSession();
  void Leave();
  void Lose();
  void Enter(zk::SessionState state);
  // An action for later that does nothing once this connection has ended.
  Action Guarded(void (Link::*method)());

  Ensemble& ensemble_;
  zk::SessionState state_ = zk::SessionState::kConnecting;
  zk::Session session_;
  bool is_cut_ = false;
  zk::ServerWatches::ConnectionId connection_ = 0;  // 0: none
  std::uint64_t attempt_ = 0;                       // counts connections and attempts
  std::int64_t seen_zxid_ = 0;
  std::deque<Call> unsent_;
  std::deque<Call> sent_;
  std::deque<Message> inbox_;
  std::shared_ptr<zk::WatchTable> table_ = std::make_shared<zk::WatchTable>();
  std::list<std::shared_ptr<std::function<void(zk::SessionState)>>> listeners_;
  Counters counters_;
};

}  // namespace nodepool::testing
