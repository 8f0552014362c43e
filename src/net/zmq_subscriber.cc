#include "net/zmq_subscriber.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zmq.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;

// After so many messages other handlers of the loop run.
constexpr int kBatch = 100;
constexpr int kMaxConnectPause = 30'000;  // ms, between attempts
constexpr Duration kPauseAfterBreak = std::chrono::seconds(1);

// The result of a call of the library, which fails without a reason of its own where a signal arrives.
template <class Call>
int Uninterrupted(const Call& call) {
  int result = call();
  while (result < 0 && zmq_errno() == EINTR) result = call();
  return result;
}

// The library's context, with its thread for the network. Never ended, because that waits for a
// thread which may be waiting for a name server.
void* Context() {
  static void* const context = zmq_ctx_new();
  return context;
}

class ZmqSocket {
 public:
  explicit ZmqSocket(int type) : socket_(Context() == nullptr ? nullptr : zmq_socket(Context(), type)) {
    if (socket_ == nullptr) throw Error(Verdict::kFail, fmt::format("ZeroMQ: {}", zmq_strerror(zmq_errno())));
  }
  ~ZmqSocket() { zmq_close(socket_); }
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;
  void* get() const { return socket_; }

 private:
  void* socket_;
};

// A connection to one publisher. The library restores it when it broke, but not when the publisher
// violated the protocol or sent too much; so IsBroken reports each break, and the owner creates
// another subscription.
class Subscription {
 public:
  Subscription(const std::string& endpoint, const ZmqLimits& limits) : limits_(limits) {
    Set(ZMQ_LINGER, 0);
    Set(ZMQ_RCVHWM, limits.queued_messages);
    Set(ZMQ_IPV6, 1);
    Set(ZMQ_RECONNECT_IVL_MAX, kMaxConnectPause);
    Set(ZMQ_TCP_KEEPALIVE, 1);
    Set(ZMQ_TCP_KEEPALIVE_IDLE, 60);
    Set(ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(limits.message_bytes));
    zmq_setsockopt(socket_.get(), ZMQ_SUBSCRIBE, "", 0);
    std::string breaks = fmt::format("inproc://breaks-of-{}", socket_.get());
    bool is_watched = zmq_socket_monitor(socket_.get(), breaks.c_str(), ZMQ_EVENT_DISCONNECTED) == 0 &&
                      zmq_connect(breaks_.get(), breaks.c_str()) == 0;
    if (!is_watched) throw Error(Verdict::kFail, fmt::format("ZeroMQ: {}", zmq_strerror(zmq_errno())));
    bool is_remote = endpoint.starts_with("tcp://") || endpoint.starts_with("ipc://");
    if (!is_remote) throw Error(Verdict::kInvalid, "it is not tcp://host:port or ipc://path");
    if (zmq_connect(socket_.get(), endpoint.c_str()) != 0)
      throw Error(Verdict::kInvalid, zmq_strerror(zmq_errno()));
  }

  // The library's thread waits for ever to send an event to a reader that has gone, so events are
  // switched off first.
  ~Subscription() { zmq_socket_monitor(socket_.get(), nullptr, 0); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Becomes readable when there may be a message, or the connection may have broken; it is
  // signalled only once.
  int Signal() const {
    int signal = -1;
    std::size_t size = sizeof signal;
    zmq_getsockopt(socket_.get(), ZMQ_FD, &signal, &size);
    return signal;
  }

  // Processes everything that was signalled.
  bool HasMessage() const {
    int events = 0;
    std::size_t size = sizeof events;
    int read = Uninterrupted([&] { return zmq_getsockopt(socket_.get(), ZMQ_EVENTS, &events, &size); });
    return read == 0 && (events & ZMQ_POLLIN) != 0;
  }

  // The next message; the part beyond the limit is cut off. Only after HasMessage().
  std::string Receive() {
    std::string message;
    bool has_more = true;
    while (has_more) {
      zmq_msg_t frame;
      zmq_msg_init(&frame);
      bool is_received =
          Uninterrupted([&] { return zmq_msg_recv(&frame, socket_.get(), ZMQ_DONTWAIT); }) >= 0;
      std::string_view text(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
      has_more = is_received && zmq_msg_more(&frame) != 0;
      if (message.size() <= limits_.message_bytes) message.append(message.empty() ? "" : " ").append(text);
      zmq_msg_close(&frame);
    }
    return message;
  }

  // The library sends the event of a break before it signals it.
  bool IsBroken() {
    return Uninterrupted([&] { return zmq_recv(breaks_.get(), nullptr, 0, ZMQ_DONTWAIT); }) >= 0;
  }

 private:
  template <class Value>
  void Set(int option, Value value) {
    zmq_setsockopt(socket_.get(), option, &value, sizeof value);
  }

  ZmqLimits limits_;
  ZmqSocket breaks_{ZMQ_PAIR};
  ZmqSocket socket_{ZMQ_SUB};
};

Task<> ReceiveUntilBroken(Loop& loop, const std::string& endpoint,
                          const std::function<void(std::string_view)>& receive, const ZmqLimits& limits) {
  Subscription subscription(endpoint, limits);
  // The library closes its own descriptor.
  asio::posix::stream_descriptor signal(loop.context(), ::dup(subscription.Signal()));
  while (true) {
    int received = 0;
    for (; received < kBatch && subscription.HasMessage(); ++received) receive(subscription.Receive());
    if (received == kBatch) {
      co_await loop.GiveWay();
    } else {
      if (subscription.IsBroken()) co_return;
      co_await signal.async_wait(asio::posix::descriptor_base::wait_read, asio::use_awaitable);
    }
  }
}

}  // namespace

Task<> ReceiveFromPublisher(Loop& loop, std::string endpoint, std::function<void(std::string_view)> receive,
                            log::Logger logger, ZmqLimits limits) {
  while (true) {
    co_await ReceiveUntilBroken(loop, endpoint, receive, limits);
    logger.Info("The connection to {} broke and is restored", Excerpt(endpoint));
    co_await loop.SleepFor(kPauseAfterBreak);
  }
}

}  // namespace nodepool::net
