#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/subscription.h"
#include "base/text.h"
#include "zk/client.h"
#include "zk/wire/protocol.h"
#include "zk/wire/wire_client.h"
#include "zk/wire/wire_connection.h"

namespace nodepool::zk {

// The watches of a client and their watchers (coordination.md 2.9). Paths are without the chroot.
// Watchers may add and remove watches while they are called.
class WatchTable : public std::enable_shared_from_this<WatchTable> {
 public:
  // The lists that a server keeps apart.
  enum class OneShotKind { kData, kExist, kChild };

  void AddOneShot(OneShotKind kind, std::string path, Watcher watcher);
  // The watch stays until the registration is destroyed, which may outlive the table.
  Subscription AddLasting(WatchMode mode, std::string path, Watcher watcher);

  // Hands an event to all watchers it concerns. One event serves all: the one-shot watches of the
  // path (which are removed), the persistent ones of the path and the recursive ones of the path
  // and its ancestors.
  void Dispatch(const WatchEvent& event);

  // The session is lost: each one-shot watcher is called with kNone and removed. The lasting ones
  // stay for the next session.
  void DropOneShots();

  // The watches that a server must be sent after a reconnection.
  protocol::WatchPaths Paths() const;

 private:
  struct Entry {
    Watcher watcher;
    bool is_active = true;
  };
  using OneShots = TextMap<std::vector<Watcher>>;
  // Shared so that a watcher may end its own registration while it runs.
  using Lasting = TextMap<std::list<std::shared_ptr<Entry>>>;

  static void Take(OneShots& from, const std::string& path, std::vector<Watcher>& into);
  void NotifyLasting(const Lasting& watches, const std::string& path, const WatchEvent& event);
  void NotifyAncestors(const WatchEvent& event);
  OneShots& one_shots(OneShotKind kind);
  Lasting& lasting(WatchMode mode) { return mode == WatchMode::kPersistent ? persistent_ : recursive_; }

  OneShots data_;
  OneShots exist_;
  OneShots child_;
  Lasting persistent_;
  Lasting recursive_;
};

// The answer to one operation that is in flight. The session holds it until the server answers, the
// caller until the result is taken.
//
// A success resumes the caller at once, in the order of the wire, so that results
// and watch events keep their order; a failure resumes it later on the loop, since
// failures also arise inside calls of the client.
class Reply {
 public:
  Reply(boost::asio::io_context& context, protocol::OpCode op, std::string path)
      : context_(context), op_(op), path_(std::move(path)) {}
  virtual ~Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // `code` is kOk or an ordinary answer (see Result). Throws Error(kFail) when the
  // body is malformed; the reply is then still open. Does nothing when abandoned.
  virtual void Deliver(Code code, JuteReader& body) = 0;
  void Fail(Failure failure);

  protocol::OpCode op() const { return op_; }
  const std::string& path() const { return path_; }
  // Whether no caller waits for the result any more.
  bool is_abandoned() const { return is_abandoned_; }
  void Abandon() { is_abandoned_ = true; }

  bool is_done() const { return is_done_; }
  // Ends when the reply is done, by a result or an error; throws operation_aborted when the caller
  // is cancelled. At most one caller waits.
  Task<> WaitUntilDone();

 protected:
  void DoneNow();
  void RethrowFailure() const {
    if (failure_) failure_->Rethrow();
  }

 private:
  using Resume = std::move_only_function<void(boost::system::error_code)>;

  template <class Handler>
  void SetWaiter(Handler handler);
  Resume TakeResume();
  void ResumeLater(Resume resume, boost::system::error_code result);

  boost::asio::io_context& context_;
  protocol::OpCode op_;
  std::string path_;
  std::optional<Failure> failure_;
  Resume resume_;
  boost::asio::cancellation_slot slot_;
  bool is_done_ = false;
  bool is_abandoned_ = false;
};

template <class T>
class ReplyOf : public Reply {
 public:
  using Reply::Reply;

  // The result, or throws the error; requires is_done(). To be called once.
  T TakeResult() {
    RethrowFailure();
    return std::move(*value_);
  }

 protected:
  void Succeed(T value) {
    value_.emplace(std::move(value));
    DoneNow();
  }

 private:
  std::optional<T> value_;
};

// A reply whose value `decode(code, body)` reads.
template <class T, class Decode>
class DecodedReply final : public ReplyOf<T> {
 public:
  DecodedReply(boost::asio::io_context& context, protocol::OpCode op, std::string path, Decode decode)
      : ReplyOf<T>(context, op, std::move(path)), decode_(std::move(decode)) {}

  void Deliver(Code code, JuteReader& body) override {
    if (!this->is_abandoned()) this->Succeed(decode_(code, body));
  }

 private:
  Decode decode_;
};

// The caller's side: when it is destroyed, the reply is abandoned.
template <class T>
class ReplyHolder {
 public:
  explicit ReplyHolder(std::shared_ptr<ReplyOf<T>> reply) : reply_(std::move(reply)) {}
  ReplyHolder(ReplyHolder&& other) noexcept : reply_(std::move(other.reply_)) {}
  ReplyHolder& operator=(ReplyHolder&&) = delete;
  ~ReplyHolder() {
    if (reply_) reply_->Abandon();
  }
  ReplyOf<T>* operator->() const { return reply_.get(); }

 private:
  std::shared_ptr<ReplyOf<T>> reply_;
};

template <class T>
Task<T> TakeReply(ReplyHolder<T> holder) {
  if (!holder->is_done()) {
    auto executor = co_await boost::asio::this_coro::executor;
    AwaitNote note(executor, protocol::NameOf(holder->op()), holder->path());
    co_await holder->WaitUntilDone();
  }
  co_return holder->TakeResult();
}

// The error that a server's refusal means for the caller; not for ordinary answers (see Result).
Error RefusalOf(Code code, protocol::OpCode op, std::string_view path);

// WireClient's engine: one task connects, shakes hands, re-arms watches and reads;
// operations are appended to the connection's buffer as they are called. Shared
// between the client and that task, which may outlive the client by a moment.
class WireSession : public std::enable_shared_from_this<WireSession> {
 public:
  WireSession(Loop& loop, Random& random, WireOptions options);

  void Start();
  // Close: ends the session on the server, for at most two seconds, then the task.
  Task<> Close();
  // The client is destroyed: ends the task without waiting for it.
  void Abandon();

  // Sends an operation: `encode(JuteWriter&, const std::string& path)` writes its
  // body, `decode(Code, JuteReader&)` reads the answer into a T. Both errors of the
  // call and of the server come out of the returned task. `check()` runs first and
  // throws what is wrong with the arguments.
  template <class T, class Check, class Encode, class Decode>
  Task<T> Call(protocol::OpCode op, std::string path, Check check, Encode encode, Decode decode) {
    auto reply =
        std::make_shared<DecodedReply<T, Decode>>(loop_.context(), op, std::move(path), std::move(decode));
    try {
      check(reply->path());
      std::string& frame = BeginRequest(op, reply);
      JuteWriter out(frame);
      encode(out, reply->path());
      EndRequest(frame);
    } catch (...) {
      reply->Fail(Failure(std::current_exception()));
    }
    return TakeReply<T>(ReplyHolder<T>(reply));
  }

  Subscription OnSession(std::function<void(SessionState)> listener);
  void SetServers(std::vector<HostPort> servers) { options_.servers = std::move(servers); }

  SessionState state() const { return state_; }
  Session session() const { return {session_id_, session_id_ == 0 ? 0 : generation_}; }
  // The transaction that the server had reached with its latest answer.
  std::int64_t last_zxid() const { return last_zxid_; }
  const std::string& chroot() const { return options_.chroot; }
  WatchTable& watches() { return *watches_; }
  WireClient::Counters counters() const { return counters_; }

 private:
  struct Established {
    std::shared_ptr<WireConnection> connection;
    protocol::ConnectResponse response;
  };
  // What a handshake asks for.
  enum class Claim { kOwnSession, kNewSession };
  struct WaitingRequest {
    std::string frame;
    std::shared_ptr<Reply> reply;
  };
  struct SentRequest {
    std::int32_t xid;
    std::shared_ptr<Reply> reply;  // none for the closing of the session
  };
  struct Listener {
    std::function<void(SessionState)> call;
    bool is_active = true;
  };
  using Listeners = std::list<std::shared_ptr<Listener>>;
  struct OnRunEnd;

  // Operations. BeginRequest throws when none can be taken now.
  std::string& BeginRequest(protocol::OpCode op, std::shared_ptr<Reply> reply);
  void EndRequest(std::string& frame);
  void SendWaiting();
  std::int32_t NextXid();
  void Count(protocol::OpCode op);
  void FailSent(Verdict verdict, const std::string& why);
  void FailWaiting(Verdict verdict, const std::string& why);
  void FailAll(Verdict verdict, const std::string& why);

  // The task (wire_run.cc).
  Task<> Run();
  Task<Established> Connect();
  Task<std::optional<Established>> AskServers(const std::vector<boost::asio::ip::tcp::endpoint>& endpoints,
                                              Claim claim, std::vector<std::string>& problems);
  Task<Established> ShakeHands(boost::asio::ip::tcp::endpoint endpoint, Claim claim);
  bool IsSessionRefusedForGood() const;
  Task<std::string> Serve(std::shared_ptr<WireConnection> connection);
  void Adopt(Established established);
  void SendAuth();
  void RearmWatches();
  void ConnectionLost(const std::string& why);
  void SessionLost(const std::string& why);
  void LogTrouble(const std::vector<std::string>& problems);
  Duration AttemptTimeout(std::size_t endpoints) const;

  // Answers.
  void HandleFrame(std::string_view frame);
  void HandleEvent(const protocol::ReplyHeader& header, JuteReader& body);
  void HandleReply(const protocol::ReplyHeader& header, JuteReader& body);
  void DeliverReply(Reply& reply, Code code, JuteReader& body);

  void KeepAlive();
  Duration NextPingInterval();
  void StopKeepAlive();
  void SetState(SessionState state);
  // Becomes kClosed for good and fails everything.
  void GiveUp(const std::string& why);
  void EndRun();

  Loop& loop_;
  Random& random_;
  WireOptions options_;
  log::Logger log_{"nodepool.zk.ZooKeeperClient"};
  std::unique_ptr<boost::asio::ssl::context> tls_;
  std::shared_ptr<WatchTable> watches_ = std::make_shared<WatchTable>();

  SessionState state_ = SessionState::kConnecting;
  std::int64_t session_id_ = 0;
  std::uint64_t generation_ = 0;
  std::string password_;
  std::int64_t last_zxid_ = 0;
  Duration session_timeout_{0};  // as the server granted it
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();

  std::shared_ptr<WireConnection> connection_;  // only while the session is connected
  std::deque<SentRequest> sent_;
  std::deque<WaitingRequest> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::shared_ptr<Reply> being_written_;  // between BeginRequest and EndRequest
  std::size_t frame_start_ = 0;
  std::int32_t last_xid_ = 0;
  WireClient::Counters counters_;

  Clock::TimerId keep_alive_timer_ = 0;
  Duration ping_interval_{0};
  Backoff backoff_;
  boost::asio::ip::tcp::endpoint last_server_;  // tried last after its connection was lost
  std::uint64_t refusals_ = 0;                  // of handshakes, by servers that could be reached
  std::optional<SteadyTime> refused_since_;     // none: no server refused our session when last asked
  SteadyTime next_trouble_log_ = SteadyTime::min();

  boost::asio::cancellation_signal cancel_run_;
  std::optional<TaskRegistry::Entry> registry_entry_;
  bool is_closing_ = false;
  std::string why_closed_;
  Event run_ended_{"the end of the connection"};
};

}  // namespace nodepool::zk
