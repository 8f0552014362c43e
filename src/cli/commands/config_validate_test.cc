#include <gmock/gmock.h>

#include "cli/commands/commands.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {

namespace {

// A provider that reports what a test sets, or hangs.
class CheckedTools : public driver::OperatorTools {
 public:
  struct Script {
    std::vector<std::string> faults;
    std::string error;
    bool hangs = false;
    bool is_stopped = false;
  };
  CheckedTools(Loop& loop, Script& script) : loop_(loop), script_(script) {}

  Task<> Stop() override {
    script_.is_stopped = true;
    co_return;
  }
  Task<std::vector<std::string>> FindFaults() override {
    if (script_.hangs) co_await loop_.SleepFor(std::chrono::hours(1));
    if (!script_.error.empty()) throw Error(Verdict::kInvalid, script_.error);
    co_return script_.faults;
  }

 private:
  Loop& loop_;
  Script& script_;
};

class CheckOnlineTest : public CommandTest {
 protected:
  CheckOnlineTest() {
    context_.make_tools = [this](const ProviderName& name) {
      return std::make_unique<CheckedTools>(time_.loop(), scripts_[name]);
    };
    Add("north");
    Add("south");
  }
  CheckedTools::Script& Add(const std::string& name) {
    config_->providers[ProviderName(name)] = std::make_shared<driver::ProviderConfig>();
    return scripts_[ProviderName(name)];
  }
  int Check(Task<> connect) { return time_.Run(CheckOnline(context_, "zk:2181", std::move(connect))); }
  static Task<> Connects() { co_return; }
  static Task<> Refuses() {
    throw Error(Verdict::kFail, "refused for good");
    co_return;
  }
  Task<> Waits() { co_await time_.loop().SleepFor(std::chrono::hours(1)); }

  std::map<ProviderName, CheckedTools::Script> scripts_;
};

TEST_F(CheckOnlineTest, OneLineForEachThatIsGood) {
  EXPECT_EQ(Check(Connects()), 0);
  EXPECT_EQ(log_.Count("ZooKeeper at zk:2181 is good"), 1);
  EXPECT_EQ(log_.Count("Provider north is good"), 1);
  EXPECT_EQ(log_.Count("Provider south is good"), 1);
}

TEST_F(CheckOnlineTest, OneLineSaysWhatIsWrong) {
  scripts_[ProviderName("north")].faults = {"the cloud has no active image debain", "no network nowhere"};
  scripts_[ProviderName("south")].error = "logging in: 401 Unauthorized";
  EXPECT_EQ(Check(Connects()), 1);
  EXPECT_EQ(log_.Count("Provider north: the cloud has no active image debain; no network nowhere"), 1);
  EXPECT_EQ(log_.Count("Provider south cannot be used: logging in: 401 Unauthorized"), 1);
  EXPECT_TRUE(scripts_[ProviderName("south")].is_stopped);
}

TEST_F(CheckOnlineTest, WithoutZooKeeperTheCloudsAreAskedAllTheSame) {
  EXPECT_EQ(Check(Refuses()), 1);
  EXPECT_EQ(log_.Count("ZooKeeper at zk:2181 cannot be used: refused for good"), 1);
  EXPECT_EQ(log_.Count("Provider north is good"), 1);
}

TEST_F(CheckOnlineTest, NobodyIsWaitedForForever) {
  scripts_[ProviderName("north")].hangs = true;
  EXPECT_EQ(Check(Waits()), 1);
  EXPECT_EQ(log_.Count("ZooKeeper at zk:2181 cannot be used: connecting timed out"), 1);
  EXPECT_EQ(log_.Count("Provider north cannot be used: asking the provider timed out"), 1);
  EXPECT_EQ(log_.Count("Provider south is good"), 1);
}

}  // namespace

}  // namespace nodepool::cli
