// Any frames from a ZeroMQ publisher: the subscriber passes each message on with its frames joined, and what
// it is read as is a job event or an error. Frames are read from the network by libzmq, whose part of the
// protocol is not tried here.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "model/job.h"
#include "net/zmq_subscriber.h"

namespace nodepool {
namespace {

// A publisher and its subscriber, which stay connected.
class Connection {
 public:
  Connection() {
    log::SetLevel("", log::Level::kCritical);
    int unlimited = 0;
    zmq_setsockopt(socket_, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    std::string endpoint = "ipc:///dev/shm/job_messages_fuzz." + std::to_string(getpid());
    if (zmq_bind(socket_, endpoint.c_str()) != 0) __builtin_trap();
    auto receive = [this](std::string_view message) { received_ = message; };
    net::ZmqLimits limits{.message_bytes = kMaxJobMessageBytes, .queued_messages = 0};
    tasks_.Spawn("subscribe",
                 net::ReceiveFromPublisher(loop_, endpoint, receive, log::Logger("fuzz"), limits));
    // What is sent before the subscription is lost.
    while (received_.empty()) {
      zmq_send(socket_, "hello", 5, 0);
      testing::RunReady(loop_);
    }
    while (Pass({"end of hello"}) != "end of hello") continue;
  }

  // What arrives of a message.
  std::string Pass(const std::vector<std::string>& frames) {
    received_.clear();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      // Not sent where a signal arrives, as the fuzzer's own does.
      while (zmq_send(socket_, frames[i].data(), frames[i].size(), flags) < 0 && zmq_errno() == EINTR)
        continue;
    }
    while (received_.empty()) loop_.context().run_one();
    return received_;
  }

 private:
  Loop loop_;
  void* socket_ = zmq_socket(zmq_ctx_new(), ZMQ_PUB);
  std::string received_;
  TaskGroup tasks_{loop_, log::Logger("fuzz")};
};

}  // namespace
}  // namespace nodepool

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto& connection = *new nodepool::Connection;
  FuzzedDataProvider in(data, size);
  std::vector<std::string> frames;
  std::string joined;
  do {
    frames.push_back(in.ConsumeRandomLengthString());
    joined += (joined.empty() ? "" : " ") + frames.back();
  } while (in.remaining_bytes() > 0);
  if (joined.empty()) return 0;  // cannot be told from nothing received
  if (connection.Pass(frames) != joined) __builtin_trap();
  auto event = nodepool::ParseJobMessage(joined);
  if (event && event->job.empty()) __builtin_trap();
  (void)nodepool::ParseJobEvent(joined);
  return 0;
}
