#include "net/zmq_subscriber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <zmq.h>

#include <stop_token>
#include <thread>

#include "async/deadline.h"
#include "async/task_group.h"

namespace nodepool::net {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// A publisher with the library's own socket.
class Publisher {
 public:
  explicit Publisher(const std::string& endpoint = "tcp://127.0.0.1:*") {
    zmq_setsockopt(socket_, ZMQ_SNDHWM, &kUnlimited, sizeof kUnlimited);
    EXPECT_EQ(zmq_bind(socket_, endpoint.c_str()), 0) << zmq_strerror(zmq_errno());
    char bound[100] = "";
    std::size_t size = sizeof bound;
    zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound, &size);
    endpoint_ = bound;
  }
  ~Publisher() {
    int none = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof none);
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  const std::string& endpoint() const { return endpoint_; }
  void Send(const std::string& message, int flags = 0) {
    // Not sent where a signal arrives.
    while (zmq_send(socket_, message.data(), message.size(), flags) < 0 && zmq_errno() == EINTR) continue;
  }

 private:
  static constexpr int kUnlimited = 0;
  void* context_ = zmq_ctx_new();
  void* socket_ = zmq_socket(context_, ZMQ_PUB);
  std::string endpoint_;
};

class ZmqTest : public ::testing::Test {
 protected:
  void Subscribe(std::string endpoint, ZmqLimits limits = {}) {
    Subscribe(tasks_, std::move(endpoint), limits);
  }
  void Subscribe(TaskGroup& tasks, std::string endpoint, ZmqLimits limits = {}) {
    auto receive = [this](std::string_view message) { received_.emplace_back(message); };
    tasks.Spawn("subscribe", ReceiveFromPublisher(loop_, std::move(endpoint), receive, logger_, limits));
  }
  void TearDown() override { RunToEnd(loop_, tasks_.Stop()); }

  // Sends until one message has arrived, since messages sent before the subscription are lost.
  void Greet(Publisher& publisher) {
    received_.clear();
    ASSERT_TRUE(Await([&] {
      publisher.Send("hello");
      return !received_.empty();
    }));
    publisher.Send("goodbye");
    ASSERT_TRUE(Await([&] { return received_.back() == "goodbye"; }));
    received_.clear();
  }
  bool Await(std::function<bool()> condition) {
    SteadyTime end = loop_.SteadyNow() + std::chrono::seconds(20);
    while (!condition()) {
      if (loop_.SteadyNow() > end) return false;
      RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(5)));
    }
    return true;
  }

  Loop loop_;
  log::Capture log_;
  log::Logger logger_{"test"};
  TaskGroup tasks_{loop_, logger_};
  std::vector<std::string> received_;
};

TEST_F(ZmqTest, EveryMessageOfABurstArrivesInOrder) {
  Publisher publisher;
  Subscribe(publisher.endpoint(), {.queued_messages = 10'000});
  Greet(publisher);
  constexpr std::size_t kMany = 2'000;
  for (std::size_t i = 0; i < kMany; ++i) publisher.Send(std::to_string(i));
  ASSERT_TRUE(Await([&] { return received_.size() == kMany; })) << received_.size();
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(received_[i], std::to_string(i));
  publisher.Send("one more");
  EXPECT_TRUE(Await([&] { return received_.size() == kMany + 1; })) << "nothing is left behind in the queue";
}

TEST_F(ZmqTest, SignalsLoseNothing) {
  Publisher publisher;
  Subscribe(publisher.endpoint());
  Greet(publisher);
  struct sigaction ignore = {};
  ignore.sa_handler = [](int) {};
  struct sigaction before = {};
  sigaction(SIGUSR2, &ignore, &before);
  std::jthread signals([receiver = pthread_self()](const std::stop_token& end) {
    while (!end.stop_requested()) {
      pthread_kill(receiver, SIGUSR2);
      std::this_thread::yield();
    }
  });
  loop_.context().restart();
  for (int i = 0; i < 5000; ++i) {
    received_.clear();
    publisher.Send(std::to_string(i));
    SteadyTime end = loop_.SteadyNow() + std::chrono::seconds(20);
    while (received_.empty() && loop_.SteadyNow() < end) loop_.context().run_one_for(std::chrono::seconds(1));
    ASSERT_EQ(received_, std::vector<std::string>{std::to_string(i)});
  }
  signals = {};
  sigaction(SIGUSR2, &before, nullptr);
}

TEST_F(ZmqTest, FramesOfAMessageAreOneText) {
  Publisher publisher;
  Subscribe(publisher.endpoint());
  Greet(publisher);
  publisher.Send("onStarted", ZMQ_SNDMORE);
  publisher.Send("{}");
  ASSERT_TRUE(Await([&] { return !received_.empty(); }));
  EXPECT_EQ(received_[0], "onStarted {}");
}

TEST_F(ZmqTest, EndpointsThatCannotBeUsed) {
  for (std::string bad : {"nonsense", "", "tcp://", "tcp://127.0.0.1", "inproc://x"}) Subscribe(bad);
  RunToEnd(loop_, tasks_.Join());
  EXPECT_EQ(log_.Count("subscribe"), 5);
}

TEST_F(ZmqTest, APublisherThatRestartsIsReceivedAgain) {
  std::string endpoint;
  {
    Publisher first;
    endpoint = first.endpoint();
    Subscribe(endpoint);
    Greet(first);
  }
  Publisher second(endpoint);
  Greet(second);
}

// A break while the subscriber stops.
TEST_F(ZmqTest, StoppingASubscriberBlocksNothing) {
  for (int i = 0; i < 100; ++i) {
    auto publisher = std::make_unique<Publisher>();
    TaskGroup tasks(loop_, logger_);
    Subscribe(tasks, publisher->endpoint());
    Greet(*publisher);
    std::jthread breaking([&] { publisher.reset(); });
    RunToEnd(loop_, tasks.Stop());
    if (HasFatalFailure()) return;
  }
}

// The connection to a publisher that sends too much is closed, and made again.
TEST_F(ZmqTest, MessagesAreLimitedInSize) {
  Publisher publisher;
  Subscribe(publisher.endpoint(), {.message_bytes = 100});
  Greet(publisher);
  publisher.Send(std::string(1'000'000, 'x'));
  Greet(publisher);
  EXPECT_THAT(received_, Each(SizeIs(::testing::Le(100u))));
}

}  // namespace
}  // namespace nodepool::net
