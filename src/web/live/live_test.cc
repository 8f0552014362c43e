#include "web/live/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <numeric>

#include "async/task_group.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::web {

namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::size_t Count(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

Task<> ReadInto(std::string& text, std::shared_ptr<EventStream> stream) {
  while (std::shared_ptr<const std::string> piece = co_await stream->Next()) text += *piece;
}

// Streams of a launcher, without a server.
class LiveTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    launcher::LauncherTest::SetUp();
    running_ = &StartLauncher();
    live_.emplace(time_.loop(), *running_->launcher, prometheus_,
                  std::make_shared<RecentAnswers>(time_.loop()));
  }
  void TearDown() override {
    time_.Run(readers_.Stop());
    live_.reset();
    launcher::LauncherTest::TearDown();
  }
  // What a new client receives from now on.
  std::string& Listen(const std::string& topics = "", const std::string& last_id = "") {
    std::string& text = texts_.emplace_back();
    readers_.Spawn("listen", ReadInto(text, live_->Open(*ReadTopics(topics), last_id)));
    time_.Advance(std::chrono::milliseconds(1));
    return text;
  }
  std::string Taken(std::string& text, Duration within = std::chrono::milliseconds(60)) {
    time_.Advance(within);
    return std::exchange(text, {});
  }
  static std::string LastId(const std::string& text) {
    std::size_t begin = text.rfind("id: ") + 4;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  launcher::LauncherFixture::Running* running_ = nullptr;
  metrics::Prometheus prometheus_;
  std::optional<Live> live_;
  std::list<std::string> texts_;
  TaskGroup readers_{time_.loop(), log::Logger("test")};
};

TEST_F(LiveTest, AChangeIsSentWithin50Milliseconds) {  // PAGE-1
  std::string& text = Listen("nodes");
  EXPECT_THAT(Taken(text),
              AllOf(StartsWith("retry: 1000\nid: "), HasSubstr("event: hello\ndata: {\"now\":1700000")));
  NodeId node = AddNode(NodeState::kHold);
  EXPECT_THAT(Taken(text), AllOf(HasSubstr("event: nodes\ndata: {\"id\":\"" + node.value),
                                 HasSubstr("\"state_since\":17"), Not(HasSubstr("_age"))));
}

TEST_F(LiveTest, ManyChangesOfARecordAreOneEvent) {  // PAGE-1
  NodeId node = AddNode(NodeState::kHold);
  std::string& text = Listen("nodes");
  Taken(text);
  for (const char* comment : {"a", "b", "c", "d"})
    ChangeNode(node, [&](Node& record) { record.comment = comment; });
  std::string sent = Taken(text);
  EXPECT_THAT(sent, HasSubstr("\"comment\":\"d\""));
  EXPECT_THAT(sent, Not(HasSubstr("\"comment\":\"c\"")));
}

TEST_F(LiveTest, ALineBreakInARecordIsNoLineBreakInTheStream) {
  std::string& text = Listen("nodes");
  Taken(text);
  Put("/nodepool/nodes/0000004711",
      "{\"state\": \"hold\", \"type\": [\"small\"], \"provider\": \"x\",\n"
      "\"user_data\": {\"a\":\n\n\"event: evil\\n\\ndata: {}\"},\n\"comment\": \"one\\ntwo\"}");
  std::string sent = Taken(text);
  EXPECT_THAT(sent, HasSubstr("one\\ntwo"));
  EXPECT_EQ(std::ranges::count(sent, '\n'), 4) << "id, event, data and the empty line:\n" << sent;
}

TEST_F(LiveTest, EveryClientReadsTheSameText) {
  Taken(Listen());
  std::shared_ptr<EventStream> a = live_->Open(*ReadTopics("nodes"), "");
  std::shared_ptr<EventStream> b = live_->Open(*ReadTopics("nodes"), "");
  time_.Run(a->Next());
  time_.Run(b->Next());
  AddNode(NodeState::kHold);
  time_.Advance(std::chrono::milliseconds(60));
  EXPECT_EQ(time_.Run(a->Next()), time_.Run(b->Next()));
}

TEST_F(LiveTest, AClientThatReturnsCatchesUp) {  // PAGE-2
  std::string& first = Listen("nodes");
  std::string id = LastId(Taken(first));
  NodeId node = AddNode(NodeState::kHold);
  time_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Taken(Listen("nodes", id)), AllOf(HasSubstr(node.value), Not(HasSubstr("event: reset"))));
  EXPECT_THAT(Taken(Listen("nodes", "elsewhere-7")), HasSubstr("event: reset"));
}

TEST_F(LiveTest, ANewClientGetsWhatItsListsMayLack) {  // PAGE-2
  Listen("nodes");
  NodeId old = AddNode(NodeState::kHold);
  time_.Advance(std::chrono::seconds(6));
  NodeId recent = AddNode(NodeState::kHold);
  time_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Taken(Listen("nodes")), AllOf(HasSubstr(recent.value), Not(HasSubstr(old.value))));
}

TEST_F(LiveTest, AQuietStreamShowsSignsOfLife) {  // PAGE-1
  std::string& text = Listen("jobs");
  Taken(text);
  std::string sent = Taken(text, std::chrono::seconds(21));
  EXPECT_EQ(Count(sent, "event: beat\ndata: {}\n\n"), 2) << sent;
  NodeId node = AddNode(NodeState::kHold);
  std::string later = Taken(text, std::chrono::seconds(10));
  EXPECT_EQ(Count(later, "event: "), 1) << "only the beat: nodes are no topic of this stream\n" << later;
  EXPECT_NE(LastId(sent), LastId(later)) << "the client need not hear again of what is not for it";
}

TEST_F(LiveTest, NothingIsEncodedWhenNobodyHasListenedForLong) {
  std::string& text = Listen("nodes");
  std::string id = LastId(Taken(text));
  time_.Run(readers_.Stop());
  time_.Advance(std::chrono::minutes(11));
  std::shared_ptr<EventStream> late = live_->Open(*ReadTopics("nodes"), id);
  EXPECT_THAT(*time_.Run(late->Next()), HasSubstr("event: reset"));
}

TEST_F(LiveTest, WhyARequestWaitsIsSentAgainWhenItChanges) {  // PAGE-3
  provider_config().pools.at(PoolName("main"));
  std::string& text = Listen("requests");
  Taken(text);
  script().available = driver::QuotaInformation::Limit({{"instances", 0}});
  RequestId request =
      Request({"small"}, [](NodeRequest& record) { record.provider = ProviderName("elsewhere"); });
  EXPECT_THAT(Taken(text, std::chrono::seconds(2)), HasSubstr(request.value));
}

TEST_F(LiveTest, ProblemsComeAndGo) {  // PAGE-20
  std::string& text = Listen("problems");
  Taken(text);
  running_->launcher->ConfigurationRejected(
      RejectedConfiguration{time_.loop().Now(), "nodepool.yaml:2:1: no"});
  EXPECT_THAT(Taken(text, std::chrono::seconds(4)),
              AllOf(HasSubstr("event: problems\ndata: {\"id\":\"configuration-rejected/launcher/np01\""),
                    HasSubstr("nodepool.yaml:2:1: no"), HasSubstr("config-validate")));
  running_->launcher->ConfigurationRejected(std::nullopt);
  EXPECT_THAT(Taken(text, std::chrono::seconds(4)),
              HasSubstr("{\"id\":\"configuration-rejected/launcher/np01\",\"is_gone\":true}"));
}

TEST_F(LiveTest, AShortageIsOneChangeAndItsRequestsAreNone) {  // PAGE-5
  script().available = driver::QuotaInformation::Limit({{"instances", 0}});
  label_config("small").min_ready = 3;
  running_->launcher->Reconfigure(std::make_shared<driver::LoadedConfig>(*running_->launcher->config()));
  time_.Advance(std::chrono::minutes(5));
  std::vector<std::string> about;
  for (const ChangeEntry* change : live_->changes().Latest(100)) about.push_back(change->about);
  EXPECT_THAT(about, ::testing::ElementsAre("small"));
}

TEST_F(LiveTest, ChangesAreKeptInWords) {  // PAGE-5
  EXPECT_THAT(live_->changes().Latest(10), IsEmpty()) << "what was found at the start is no change";
  NodeId node = AddNode(NodeState::kHold);
  time_.Advance(std::chrono::milliseconds(60));
  auto latest = live_->changes().Latest(10);
  ASSERT_EQ(latest.size(), 1u);
  EXPECT_EQ(latest[0]->about, node.value);
  for (int i = 0; i < 300; ++i)
    ChangeNode(node, [&](Node& record) {
      record.state = i % 2 == 0 ? NodeState::kReady : NodeState::kHold;
      record.provider = ProviderName("elsewhere");
    });
  Put("/nodepool/images/deb/builds/b1", R"({"state": "building", "state_time": 1})");
  time_.Advance(std::chrono::seconds(1));
  latest = live_->changes().Latest(1000);
  EXPECT_EQ(latest.size(), ChangeLog::kMaxOfAKind + 1);
  EXPECT_EQ(latest[0]->text, "Build deb-b1 has begun.");
}

TEST_F(LiveTest, SamplesOfAnHourAndADay) {  // PAGE-6
  RequestId request = Request({"small"});
  ASSERT_TRUE(AwaitState(request, RequestState::kFulfilled));
  time_.Advance(std::chrono::minutes(3));
  const SampleSeries& hour = live_->sampler().hour();
  EXPECT_GE(hour.samples().size(), 18u);
  EXPECT_EQ(hour.samples().back().level.nodes.at("ready"), 1u);
  EXPECT_EQ(hour.samples().back().level.nodes_by_provider.at(ProviderName("cloud")).at("ready"), 1u);
  std::size_t waits = 0;
  for (const Sample& sample : hour.samples()) waits += sample.waits.count;
  EXPECT_EQ(waits, 1u);
  EXPECT_EQ(live_->sampler().day().samples().size(), 3u);
}

WallTime AtSecond(int second) { return FromSeconds(1'700'000'000 + second); }

TEST(SampleSeries, PercentilesAreOfTheNearestRank) {
  std::vector<double> times(100);
  std::iota(times.rbegin(), times.rend(), 1);
  Percentiles of = PercentilesOf(times);
  EXPECT_EQ(of.count, 100u);
  EXPECT_EQ(of.p50, 50);
  EXPECT_EQ(of.p95, 95);
  EXPECT_EQ(of.p99, 99);
  EXPECT_EQ(PercentilesOf({3}).p99, 3);
  EXPECT_EQ(PercentilesOf({}).count, 0u);
}

TEST(SampleSeries, AnIntervalHasWhatHappenedInIt) {  // PAGE-6
  SampleSeries series(10);
  ProviderName cloud("cloud");
  series.AddWait(seconds(4));
  series.AddLaunch(cloud, seconds(2));
  series.AddFailedLaunch(cloud);
  Level level;
  level.api_calls = 7;
  const Sample& first = series.Close(AtSecond(10), level);
  EXPECT_EQ(first.waits.p50, 4);
  EXPECT_EQ(first.launches.p50, 2);
  EXPECT_EQ(first.by_provider.at(cloud).ready, 1);
  EXPECT_EQ(first.by_provider.at(cloud).failed, 1);
  EXPECT_EQ(first.api_calls, 7);
  level.api_calls = 9;
  const Sample& second = series.Close(AtSecond(20), level);
  EXPECT_EQ(second.waits.count, 0u);
  EXPECT_TRUE(second.by_provider.empty());
  EXPECT_EQ(second.api_calls, 2);
}

TEST(SampleSeries, TheOldestSamplesAreDropped) {
  SampleSeries series(3);
  for (int i = 0; i < 5; ++i) series.Close(AtSecond(i), {});
  ASSERT_EQ(series.samples().size(), 3u);
  EXPECT_EQ(series.samples().front().at, AtSecond(2));
}

TEST(SampleSeries, NothingGrowsWithinAnInterval) {
  SampleSeries series(3);
  for (int i = 0; i < 5000; ++i) {
    series.AddWait(seconds(i));
    series.AddLaunch(ProviderName("cloud-" + std::to_string(i)), seconds(1));
  }
  const Sample& sample = series.Close(AtSecond(0), {});
  EXPECT_EQ(sample.waits.count, 2000u);
  EXPECT_EQ(sample.by_provider.size(), 100u);
}

TEST(SampleSeries, AClockThatWasSetBackMakesNoNegativeTimes) {
  SampleSeries series(3);
  series.AddWait(seconds(-5));
  EXPECT_EQ(series.Close(AtSecond(0), {}).waits.p50, 0);
}

}  // namespace

}  // namespace nodepool::web
