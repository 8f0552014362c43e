#include "cli/await_server.h"

#include <gmock/gmock.h>

#include "async/testing/virtual_time.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

// A client that finds no server; `trouble` is the reason.
class AwaitServerTest : public ::testing::Test {
 protected:
  AwaitServerTest() { zk_.Disconnect(*client_); }
  ~AwaitServerTest() override { time_.Run(client_->Close()); }

  std::string Failure(ServerWait wait, const std::string& trouble) {
    wait.servers = "zk01:2181";
    zk::WireOptions options;
    ServerAwaiter awaiter(time_.loop(), wait, options);
    if (!trouble.empty()) options.on_trouble(trouble);
    begin_ = time_.clock().SteadyNow();
    try {
      time_.Run(awaiter.Await(*client_));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  Duration waited() { return time_.clock().SteadyNow() - begin_; }

  testing::VirtualTime time_;
  testing::MemoryZk zk_{time_.loop()};
  std::unique_ptr<zk::Client> client_ = zk_.Connect();
  SteadyTime begin_;
};

TEST_F(AwaitServerTest, AnEnsembleIsWaitedForTenSeconds) {
  EXPECT_EQ(Failure({}, "zk01:2181: Connection refused"),
            "no ZooKeeper server answered within 10 s (zk01:2181: Connection refused); check "
            "zookeeper-servers, or wait longer with --wait-for-server");
  EXPECT_EQ(waited(), std::chrono::seconds(10));
}

TEST_F(AwaitServerTest, TheEmbeddedServerThatRefusesDoesNotRun) {
  EXPECT_EQ(
      Failure({.asked = std::nullopt, .is_embedded = true}, "127.0.0.1:1: Connection refused"),
      "nodepool standalone does not run (127.0.0.1:1: Connection refused); start it, or wait for it with "
      "--wait-for-server");
  EXPECT_EQ(waited(), Duration::zero());
}

TEST_F(AwaitServerTest, ItIsWaitedAsLongAsAsked) {
  EXPECT_THAT(Failure({.asked = std::chrono::seconds(60)}, ""), HasSubstr("within 60 s (zk01:2181)"));
  EXPECT_EQ(waited(), std::chrono::seconds(60));
}

TEST_F(AwaitServerTest, AServerThatAnswersEndsTheWait) {
  zk_.Reconnect(*client_);
  EXPECT_EQ(Failure({}, ""), "");
}

}  // namespace
}  // namespace nodepool::cli
