#include "zk/wire/wire_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cctype>
#include <iterator>
#include <limits>

#include "async/deadline.h"
#include "base/error.h"
#include "base/text.h"
#include "zk/wire/wire_connection.h"
#include "zk/znode.h"

namespace nodepool::zk {

namespace asio = boost::asio;
using boost::system::error_code;
using protocol::OpCode;

void WatchTable::AddOneShot(OneShotKind kind, std::string path, Watcher watcher) {
  one_shots(kind)[std::move(path)].push_back(std::move(watcher));
}

Subscription WatchTable::AddLasting(WatchMode mode, std::string path, Watcher watcher) {
  auto entry = std::make_shared<Entry>(Entry{std::move(watcher)});
  lasting(mode)[path].push_back(entry);
  return Subscription([weak = weak_from_this(), mode, path = std::move(path), entry] {
    entry->is_active = false;  // not called again, even by a dispatch that is under way
    auto table = weak.lock();
    if (!table) return;
    auto& watches = table->lasting(mode);
    auto found = watches.find(path);
    found->second.remove(entry);
    if (found->second.empty()) watches.erase(found);
  });
}

void WatchTable::Dispatch(const WatchEvent& event) {
  // Taken out before any is called: a watcher may set its next watch, which is not for this event.
  std::vector<Watcher> to_call;
  switch (event.type) {
    case EventType::kNone:
      return;
    case EventType::kCreated:
    case EventType::kDataChanged:
      Take(data_, event.path, to_call);
      Take(exist_, event.path, to_call);
      break;
    case EventType::kDeleted:
      Take(data_, event.path, to_call);
      Take(exist_, event.path, to_call);
      Take(child_, event.path, to_call);
      break;
    case EventType::kChildren:
      Take(child_, event.path, to_call);
      break;
  }
  auto self = shared_from_this();
  for (Watcher& watcher : to_call) watcher(event);
  NotifyLasting(persistent_, event.path, event);
  // A recursive watch covers the children's own events instead of this one.
  if (event.type != EventType::kChildren) NotifyAncestors(event);
}

void WatchTable::DropOneShots() {
  std::vector<Watcher> to_call;
  for (OneShots* watches : {&data_, &exist_, &child_}) {
    for (auto& [path, watchers] : *watches)
      std::move(watchers.begin(), watchers.end(), std::back_inserter(to_call));
    watches->clear();
  }
  auto self = shared_from_this();
  for (Watcher& watcher : to_call) watcher(WatchEvent{});
}

protocol::WatchPaths WatchTable::Paths() const {
  auto keys = [](const auto& watches) {
    std::vector<std::string> paths;
    paths.reserve(watches.size());
    for (const auto& [path, watchers] : watches) paths.push_back(path);
    return paths;
  };
  return {keys(data_), keys(exist_), keys(child_), keys(persistent_), keys(recursive_)};
}

void WatchTable::Take(OneShots& from, const std::string& path, std::vector<Watcher>& into) {
  auto found = from.find(path);
  if (found == from.end()) return;
  std::move(found->second.begin(), found->second.end(), std::back_inserter(into));
  from.erase(found);
}

void WatchTable::NotifyLasting(const Lasting& watches, const std::string& path, const WatchEvent& event) {
  auto found = watches.find(path);
  if (found == watches.end()) return;
  auto to_call = found->second;
  for (const auto& entry : to_call) {
    if (entry->is_active) entry->watcher(event);
  }
}

void WatchTable::NotifyAncestors(const WatchEvent& event) {
  if (recursive_.empty()) return;
  std::string path = event.path;
  while (true) {
    NotifyLasting(recursive_, path, event);
    if (path.size() <= 1) return;
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
}

WatchTable::OneShots& WatchTable::one_shots(OneShotKind kind) {
  switch (kind) {
    case OneShotKind::kData:
      return data_;
    case OneShotKind::kExist:
      return exist_;
    case OneShotKind::kChild:
      return child_;
  }
  return data_;
}

void Reply::Fail(Failure failure) {
  if (is_done_) return;
  is_done_ = true;
  failure_ = std::move(failure);
  if (Resume resume = TakeResume()) ResumeLater(std::move(resume), {});
}

void Reply::DoneNow() {
  is_done_ = true;
  if (Resume resume = TakeResume()) resume({});
}

template <class Handler>
void Reply::SetWaiter(Handler handler) {
  slot_ = asio::get_associated_cancellation_slot(handler);
  resume_ = [handler = std::move(handler)](error_code result) mutable { handler(result); };
  if (!slot_.is_connected()) return;
  slot_.assign([this](asio::cancellation_type) {
    if (Resume resume = std::exchange(resume_, nullptr)) {
      ResumeLater(std::move(resume), asio::error::operation_aborted);
    }
  });
}

Task<> Reply::WaitUntilDone() {
  auto initiate = [this](auto handler) { SetWaiter(std::move(handler)); };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(error_code)>(std::move(initiate),
                                                                               asio::use_awaitable);
}

// Also clears the cancellation handler, whose slot the caller reuses.
Reply::Resume Reply::TakeResume() {
  if (resume_ && slot_.is_connected()) slot_.clear();
  return std::exchange(resume_, nullptr);
}

void Reply::ResumeLater(Resume resume, error_code result) {
  asio::post(context_, [resume = std::move(resume), result]() mutable { resume(result); });
}

namespace {

constexpr std::size_t kMaxWaitingRequests = 100'000;
constexpr std::size_t kMaxWaitingBytes = 256 * 1024 * 1024;
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr std::size_t kXidPosition = kLengthSize;
constexpr const char* kClosed = "the ZooKeeper client is closed";

bool IsOrdinary(Code code) {
  switch (code) {
    case Code::kOk:
    case Code::kNoNode:
    case Code::kNodeExists:
    case Code::kBadVersion:
    case Code::kNotEmpty:
    case Code::kNoChildrenForEphemerals:
    case Code::kNoWatcher:
      return true;
    default:
      return false;
  }
}

}  // namespace

Error RefusalOf(Code code, OpCode op, std::string_view path) {
  bool is_transient = code == Code::kConnectionLoss || code == Code::kOperationTimeout ||
                      code == Code::kSessionMoved || code == Code::kSessionExpired;
  return Error(is_transient ? Verdict::kRetry : Verdict::kFail,
               fmt::format("ZooKeeper refused: {} {}: {} ({})", NameOf(op), path, ToString(code),
                           static_cast<int>(code)));
}

// Offers the cancellation slot without naming an executor, so that a cancellation
// reaches the task at once.
struct WireSession::OnRunEnd {
  using cancellation_slot_type = asio::cancellation_slot;
  std::shared_ptr<WireSession> session;

  cancellation_slot_type get_cancellation_slot() const noexcept { return session->cancel_run_.slot(); }
  void operator()(std::exception_ptr error) {
    if (error && VerdictOf(error) != Verdict::kCancelled) {
      session->log_.Error("The ZooKeeper client stopped: {}", MessageOf(error));
    }
    session->EndRun();
  }
};

WireSession::WireSession(Loop& loop, Random& random, WireOptions options)
    : loop_(loop), random_(random), options_(std::move(options)), backoff_(Backoff::Settings{}, random) {
  if (options_.servers.empty()) {
    throw Error(Verdict::kInvalid, "zookeeper-servers: no server is given, at least one is needed");
  }
  options_.chroot = NormalizedChroot(options_.chroot);
  if (options_.tls) tls_ = MakeTlsContext(*options_.tls);
}

void WireSession::Start() {
  registry_entry_ = loop_.tasks().Add(TaskInfo{"ZooKeeper connection", {}, loop_.SteadyNow()});
  asio::co_spawn(loop_.executor(), Run(), OnRunEnd{shared_from_this()});
}

void WireSession::EndRun() {
  if (registry_entry_) loop_.tasks().Remove(*registry_entry_);
  registry_entry_.reset();
  run_ended_.Set();
}

Task<> WireSession::Close() {
  auto self = shared_from_this();
  co_await IgnoreCancellation();
  bool is_first = !is_closing_;
  is_closing_ = true;
  if (is_first) {
    FailAll(Verdict::kLostSession, kClosed);
    if (connection_) {
      // With this the servers remove locks and ephemeral znodes at once, not after the time-out.
      EndRequest(BeginRequest(OpCode::kCloseSession, nullptr));
    } else {
      cancel_run_.emit(asio::cancellation_type::terminal);
    }
  }
  bool has_ended = co_await EndsBy(loop_, loop_.SteadyNow() + kCloseTimeout, "closing", run_ended_.Wait());
  if (!has_ended) {
    if (connection_) connection_->Close(kClosed);
    cancel_run_.emit(asio::cancellation_type::terminal);
    co_await EndsBy(loop_, loop_.SteadyNow() + kCloseTimeout, "the connection's end", run_ended_.Wait());
  }
  GiveUp(kClosed);
}

void WireSession::Abandon() {
  StopKeepAlive();
  is_closing_ = true;
  listeners_->clear();
  watches_ = std::make_shared<WatchTable>();
  FailAll(Verdict::kLostSession, kClosed);
  if (connection_) connection_->Close(kClosed);
  cancel_run_.emit(asio::cancellation_type::terminal);
}

void WireSession::GiveUp(const std::string& why) {
  if (state_ == SessionState::kClosed) return;
  is_closing_ = true;
  why_closed_ = why;
  FailAll(Verdict::kLostSession, why);
  if (connection_) connection_->Close(why);
  session_id_ = 0;
  SetState(SessionState::kClosed);
}

Subscription WireSession::OnSession(std::function<void(SessionState)> listener) {
  auto entry = std::make_shared<Listener>(Listener{std::move(listener)});
  listeners_->push_back(entry);
  return Subscription([weak = std::weak_ptr(listeners_), entry] {
    entry->is_active = false;  // not called again, even if the list is walked just now
    if (auto listeners = weak.lock()) listeners->remove(entry);
  });
}

void WireSession::SetState(SessionState state) {
  if (state_ == state) return;
  state_ = state;
  log_.Debug("ZooKeeper connection: {}", Upper(ToString(state)));
  if (state == SessionState::kLost || state == SessionState::kClosed) watches_->DropOneShots();
  auto listeners = *listeners_;
  for (const auto& listener : listeners) {
    if (listener->is_active) listener->call(state);
  }
}

std::string& WireSession::BeginRequest(OpCode op, std::shared_ptr<Reply> reply) {
  if (op != OpCode::kCloseSession) {
    if (is_closing_) throw Error(Verdict::kLostSession, why_closed_.empty() ? kClosed : why_closed_);
    if (state_ == SessionState::kLost)
      throw Error(Verdict::kLostSession, "the ZooKeeper session has expired");
    if (!connection_ && (waiting_.size() >= kMaxWaitingRequests || waiting_bytes_ >= kMaxWaitingBytes)) {
      throw Error(
          Verdict::kRetry,
          fmt::format("not connected to ZooKeeper, and {} operations wait for it already", waiting_.size()));
    }
  }
  being_written_ = std::move(reply);
  std::string& frame = connection_ ? connection_->out() : waiting_.emplace_back().frame;
  frame_start_ = frame.size();
  JuteWriter out(frame);
  out.Int(0);  // the length, known in the end
  protocol::WriteHeader(out, 0, op);
  return frame;
}

void WireSession::EndRequest(std::string& frame) {
  std::size_t length = frame.size() - frame_start_ - kLengthSize;
  std::shared_ptr<Reply> reply = std::move(being_written_);
  if (length > options_.max_packet) {
    if (connection_) {
      frame.resize(frame_start_);
    } else {
      waiting_.pop_back();
    }
    throw Error(
        Verdict::kInvalid,
        fmt::format("{} {}: the request has {} bytes, more than the {} that ZooKeeper takes (the server's "
                    "jute.maxbuffer)",
                    NameOf(reply->op()), reply->path(), length, options_.max_packet));
  }
  JuteWriter out(frame);
  out.PatchInt(frame_start_, static_cast<std::int32_t>(length));
  // It gets its number when it is sent: answers have to come in the order of the numbers.
  if (!connection_) {
    waiting_bytes_ += frame.size();
    waiting_.back().reply = std::move(reply);
    return;
  }
  std::int32_t xid = NextXid();
  out.PatchInt(frame_start_ + kXidPosition, xid);
  if (reply) Count(reply->op());
  sent_.push_back({xid, std::move(reply)});
  connection_->Flush();
}

void WireSession::SendWaiting() {
  auto waiting = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  for (WaitingRequest& request : waiting) {
    if (request.reply->is_abandoned()) continue;
    std::int32_t xid = NextXid();
    JuteWriter(request.frame).PatchInt(kXidPosition, xid);
    connection_->out().append(request.frame);
    Count(request.reply->op());
    sent_.push_back({xid, std::move(request.reply)});
  }
  connection_->Flush();
}

std::int32_t WireSession::NextXid() {
  last_xid_ = last_xid_ == std::numeric_limits<std::int32_t>::max() ? 1 : last_xid_ + 1;
  return last_xid_;
}

void WireSession::Count(OpCode op) {
  switch (op) {
    case OpCode::kExists:
    case OpCode::kGetData:
    case OpCode::kGetChildren2:
    case OpCode::kMultiRead:
    case OpCode::kSync:
    case OpCode::kAddWatch:
      ++counters_.reads;
      break;
    default:
      ++counters_.writes;
  }
}

void WireSession::FailSent(Verdict verdict, const std::string& why) {
  Failure failure(Error(verdict, why));
  // The entries stay while the server may still answer them.
  for (SentRequest& request : sent_) {
    if (request.reply) request.reply->Fail(failure);
  }
}

void WireSession::FailWaiting(Verdict verdict, const std::string& why) {
  Failure failure(Error(verdict, why));
  auto waiting = std::exchange(waiting_, {});
  waiting_bytes_ = 0;
  for (WaitingRequest& request : waiting) request.reply->Fail(failure);
}

void WireSession::FailAll(Verdict verdict, const std::string& why) {
  FailSent(verdict, why);
  FailWaiting(verdict, why);
}

void WireSession::HandleFrame(std::string_view frame) {
  JuteReader body(frame);
  protocol::ReplyHeader header = protocol::ReadReplyHeader(body);
  switch (header.xid) {
    case protocol::kEventXid:
      return HandleEvent(header, body);
    case protocol::kPingXid:
      break;
    case protocol::kAuthXid:
      if (header.code == Code::kOk) return;
      log_.Error("ZooKeeper refused the digest credentials; correct them and start again");
      return GiveUp("ZooKeeper refused the digest credentials");
    case protocol::kSetWatchesXid:
      if (header.code != Code::kOk) {
        throw Error(Verdict::kFail,
                    fmt::format("the server cannot set watches: {} (ZooKeeper 3.6 or newer is needed)",
                                ToString(header.code)));
      }
      break;
    default:
      HandleReply(header, body);
  }
}

void WireSession::HandleEvent(const protocol::ReplyHeader& header, JuteReader& body) {
  WatchEvent event = protocol::ReadEvent(body);
  event.zxid = header.zxid;
  auto path = WithoutChroot(event.path, options_.chroot);
  if (!path) return;
  event.path = std::string(*path);
  watches_->Dispatch(event);
}

void WireSession::HandleReply(const protocol::ReplyHeader& header, JuteReader& body) {
  if (sent_.empty() || sent_.front().xid != header.xid) {
    throw Error(Verdict::kFail, fmt::format("malformed answer: number {}, expected {}", header.xid,
                                            sent_.empty() ? "none" : std::to_string(sent_.front().xid)));
  }
  if (header.zxid > 0) last_zxid_ = header.zxid;
  std::shared_ptr<Reply> reply = std::move(sent_.front().reply);
  sent_.pop_front();
  if (!reply) return connection_->Close("the session is closed");
  if (IsOrdinary(header.code)) return DeliverReply(*reply, header.code, body);
  reply->Fail(Failure(RefusalOf(header.code, reply->op(), reply->path())));
  if (header.code == Code::kSessionExpired || header.code == Code::kSessionMoved) {
    throw Error(Verdict::kRetry, fmt::format("{}", ToString(header.code)));
  }
}

void WireSession::DeliverReply(Reply& reply, Code code, JuteReader& body) {
  try {
    reply.Deliver(code, body);
  } catch (...) {
    reply.Fail(Failure(std::current_exception()));
    throw;
  }
}

}  // namespace nodepool::zk
