#include <gmock/gmock.h>

#include "base/testing/test_environment.h"
#include "cli/commands/commands.h"
#include "cli/fixture_for_test.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::cli {

namespace {

using ::testing::HasSubstr;

// The embedded server is a real one and runs in real time.
class MigrateTest : public ::testing::Test {
 protected:
  MigrateTest() {
    config_->common.zookeeper.embedded.state_dir = directory_;
    config_->common.zookeeper.embedded.port = 0;
  }
  ~MigrateTest() override { RunToEnd(loop_, client_->Close()); }

  // Simulates a connected client: a znode of an open session.
  void OpenSession() {
    zk_.tree().Create({"/nodepool", ""}, 0, loop_.Now());
    RunToEnd(loop_, client_->Create("/nodepool/worker", "", zk::CreateMode::kEphemeral));
  }
  Error Refusal() {
    try {
      RunToEnd(loop_, Migrate(context_, {.to = MigrateTo::kEmbedded}));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "the records were moved";
    return Error(Verdict::kFail, "");
  }

  Loop loop_;
  testing::MemoryZk zk_{loop_};
  std::unique_ptr<zk::Client> client_ = zk_.Connect();
  testing::FaultyZk faulty_{*client_};
  SeededRandom random_{1};
  store::Store store_{loop_, faulty_, random_};
  std::ostringstream out_;
  testing::TemporaryFolder temporary_;
  std::string directory_ = temporary_.path();
  std::shared_ptr<driver::LoadedConfig> config_ = std::make_shared<driver::LoadedConfig>();
  Context context_{{loop_, random_, out_}, store_, config_};
};

TEST_F(MigrateTest, WhoStaysAtWorkIsNamedWhenTimeIsUp) {
  OpenSession();
  config_->common.zookeeper.timeout = std::chrono::milliseconds(10);
  Error error = Refusal();
  EXPECT_EQ(error.verdict(), Verdict::kConflict);
  EXPECT_THAT(error.message(), HasSubstr("/nodepool/worker belongs to a session that is open"));
}

TEST_F(MigrateTest, ALostConnectionIsNobodyAtWork) {
  OpenSession();
  faulty_.FailWhen([](const testing::FaultyZk::Call& call) {
    bool is_waiting = call.name == "AddWatch" && call.path == "/nodepool/worker";
    return is_waiting ? testing::FaultyZk::Fault::kBefore : testing::FaultyZk::Fault::kNone;
  });
  Error error = Refusal();
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_EQ(error.message(), "injected fault");
}

}  // namespace

}  // namespace nodepool::cli
