#include "launcher/peers/peer_reasons.h"

#include <boost/json/serialize.hpp>

#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

// Two launchers with a provider each, which ask each other as web servers let them.
class PeerReasonsTest : public LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    config_->providers.clear();
    AddPool("first", "main", {"large"});
    np01_ = &Start("np01");
    config_ = std::make_shared<driver::LoadedConfig>(*config_);
    config_->providers.clear();
    AddPool("second", "main", {"small"}).max_servers = 1;
    np02_ = &Start("np02");
  }

  Running& Start(const std::string& hostname) {
    Running& running = AddLauncher(hostname);
    running.launcher->HasWebServer({8005, false}, [this](std::string host, WebServer, std::string target) {
      return Answer(*this, std::move(host), std::move(target));
    });
    time_.Run(running.launcher->Start());
    return running;
  }

  static Task<std::string> Answer(PeerReasonsTest& test, std::string hostname, std::string target) {
    EXPECT_EQ(target, kReasonsTarget);
    ++test.questions_;
    if (test.is_silent_) throw Error(Verdict::kTimedOut, "port 8005 does not answer");
    if (test.is_slow_) co_await test.time_.loop().SleepFor(std::chrono::hours(1));
    json::array reasons;
    Running& asked = hostname == "np01" ? *test.np01_ : *test.np02_;
    asked.launcher->ForEachReason([&](const ReportedReason& reported) {
      const sched::RequestReason& reason = reported.reason;
      reasons.push_back(json::object{{"id", reported.id.value},
                                     {"code", reason.code},
                                     {"provider", reason.pool.provider.value},
                                     {"pool", reason.pool.pool.value},
                                     {"text", reason.text}});
      return true;
    });
    co_return json::serialize(json::object{{"reasons", std::move(reasons)}});
  }

  std::optional<sched::RequestReason> ReasonAt(Running& running, const RequestId& id) {
    return running.launcher->FindRequest(id)->reason;
  }
  // What np01 says of the request once it has asked.
  std::string TextAtFirst(const RequestId& id) {
    ReasonAt(*np01_, id);
    time_.Advance(seconds(4));
    std::optional<sched::RequestReason> reason = ReasonAt(*np01_, id);
    return reason ? reason->launcher + ": " + reason->text : "";
  }

  Running* np01_ = nullptr;
  Running* np02_ = nullptr;
  int questions_ = 0;
  bool is_silent_ = false;
  bool is_slow_ = false;
};

TEST_F(PeerReasonsTest, TheLauncherThatCouldServeItSaysWhy) {
  auto nodes = Use({"small"});
  RequestId accepted = Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  RequestId behind = Request({"small"});
  time_.Advance(seconds(1));
  std::string why = "np02: second main uses 1 of 1 instances; raise its max-servers, or wait for nodes";
  EXPECT_EQ(TextAtFirst(accepted), why);
  EXPECT_EQ(TextAtFirst(behind), why) << "equal causes have equal texts";
  std::vector<WaitReason> own = np01_->launcher->FindRequest(behind)->waits;
  ASSERT_EQ(own.size(), 1u) << "for programs each launcher says what its own pools say";
  EXPECT_EQ(own[0].code, "others-can-serve");
  EXPECT_EQ(own[0].text, "left to second main, which has its labels");
  Return(nodes);
}

TEST_F(PeerReasonsTest, ASilentLauncherIsNamed) {
  auto nodes = Use({"small"});
  Request({"small"});
  ASSERT_TRUE(Await([&] { return IsPaused(); }));
  RequestId behind = Request({"small"});
  is_silent_ = true;
  EXPECT_EQ(TextAtFirst(behind), "np02: launcher np02 does not answer: port 8005 does not answer");
  is_silent_ = false;
  EXPECT_THAT(TextAtFirst(behind), ::testing::HasSubstr("uses 1 of 1 instances"));
  is_slow_ = true;
  TextAtFirst(behind);
  EXPECT_THAT(TextAtFirst(behind), ::testing::HasSubstr("launcher np02 does not answer: "));
  Return(nodes);
}

// WHY-3
TEST_F(PeerReasonsTest, NobodyIsAskedUnlessSomebodyWantsToKnow) {
  auto nodes = Use({"small"});
  for (int i = 0; i < 20; ++i) Request({"small"});
  time_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(questions_, 0);
  for (int i = 0; i < 100; ++i) {
    np01_->launcher->ForEachRequest([](const RequestStatus&) { return true; });
    time_.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_LE(questions_, 4) << "in ten seconds, whatever the number of requests";
  time_.Advance(seconds(20));
  int asked = questions_;
  time_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(questions_, asked);
  Return(nodes);
}

// WHY-4
TEST_F(PeerReasonsTest, EachShowsTheProvidersOfAll) {
  auto nodes = Use({"small"});
  time_.Advance(seconds(1));
  std::vector<ProviderStatus> seen = np01_->launcher->ClusterProviders();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].name, ProviderName("first"));
  EXPECT_TRUE(seen[0].is_own);
  EXPECT_EQ(seen[0].launchers, std::vector<std::string>{"np01"});
  const ProviderStatus& second = seen[1];
  EXPECT_EQ(second.name, ProviderName("second"));
  EXPECT_FALSE(second.is_own);
  EXPECT_EQ(second.launchers, std::vector<std::string>{"np02"});
  EXPECT_EQ(second.driver, "");
  EXPECT_EQ(second.state, ProviderState::kUp);
  EXPECT_EQ(second.nodes.at("in-use"), 1);
  EXPECT_EQ(second.used.at("instances"), 1);
  ASSERT_EQ(second.pools.size(), 1u);
  EXPECT_EQ(second.pools[0].name, PoolName("main"));
  ASSERT_EQ(second.pools[0].labels.size(), 1u);
  EXPECT_EQ(second.pools[0].labels[0].name, LabelName("small"));
  Return(nodes);
}

}  // namespace
}  // namespace nodepool::launcher
