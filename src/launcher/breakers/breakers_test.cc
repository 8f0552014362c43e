#include "launcher/breakers/breakers.h"

#include <fmt/format.h>

#include <iterator>

#include "base/metrics.h"
#include "base/testing/test_environment.h"
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const BreakerKey kSmall{ProviderName("cloud"), PoolName("main"), LabelName("small")};

// Two clouds: `cloud`, which is preferred and can be made to fail, and `other`.
class BreakersTest : public CloudTest {
 protected:
  void StartClouds(std::string provider = "", std::vector<std::string> labels = {"small"}) {
    AddCloud({.labels = labels, .provider = "priority: 10" + (provider.empty() ? "" : ", " + provider)});
    AddCloud({.name = "other", .labels = labels, .provider = "priority: 20"});
    StartLauncher();
  }
  void Break(std::string provider = "cloud") {
    Change([](drivers::FakeSimulation& settings) { settings.create_failure_rate = 1; }, std::move(provider));
  }
  void Mend(std::string provider = "cloud") {
    Change([](drivers::FakeSimulation& settings) { settings.create_failure_rate = 0; }, std::move(provider));
  }
  std::optional<Breaker> Record(const std::string& name = "cloud:main:small") {
    auto found = time_.Run(client_->Get("/nodepool/breakers/" + name));
    if (!found) return std::nullopt;
    return *ParseBreaker(found->data);
  }
  // Lets a request fail in `cloud`, which opens the breaker; `other` serves it.
  void OpenBreaker() {
    Break();
    EXPECT_EQ(ProviderServing(), "other");
    ASSERT_TRUE(Await([&] { return Record().has_value(); }));
  }
  std::string ProviderServing(std::string label = "small") {
    RequestId id = Request({std::move(label)});
    if (!AwaitState(id, RequestState::kFulfilled, minutes(10))) return "none";
    return NodeOf(id).provider.value;
  }
  int Creates(std::string provider = "cloud") {
    return static_cast<int>(cloud(std::move(provider)).create_attempts());
  }

  metrics::Prometheus prometheus_;
  log::Capture log_;
};

// BRK-2, BRK-5, BRK-13
TEST_F(BreakersTest, RequestsGoElsewhereAtOnce) {
  StartClouds();
  EXPECT_EQ(ProviderServing(), "cloud");
  OpenBreaker();
  EXPECT_EQ(Record()->failures, 3);
  EXPECT_EQ(Record()->attempts, 4);
  EXPECT_THAT(Record()->said.value_or(""), ::testing::Not(IsEmpty()));
  int creates = Creates();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(10)));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("other"));
  EXPECT_THAT(Read(id)->declined_by, IsEmpty());
  EXPECT_EQ(Creates(), creates) << "nothing is tried during the pause";
  EXPECT_EQ(log_.Count("The breaker of label small in pool main of provider cloud is open: 3 of 4 launches"),
            1);
  const Launcher& launcher = *launchers_.front()->launcher;
  EXPECT_THAT(prometheus_.Text([&](metrics::Sink& to) { launcher.ReportGauges(to); }),
              HasSubstr("nodepool_provider_breakers_open{provider=\"cloud\"} 1"));
  EXPECT_EQ(launcher.Providers().at(0).breakers.size(), 1u);
}

// BRK-8, BRK-9
TEST_F(BreakersTest, AProbeClosesIt) {
  StartClouds();
  OpenBreaker();
  Mend();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  EXPECT_EQ(ProviderServing(), "other") << "the probe is a node of the launcher's own";
  ASSERT_TRUE(Await([&] { return !Record(); }));
  int creates = Creates();
  EXPECT_EQ(ProviderServing(), "cloud");
  EXPECT_EQ(Creates(), creates) << "the probe's node is free";
  EXPECT_EQ(log_.Count("is half-open: one launch is tried"), 1);
  EXPECT_EQ(log_.Count("The breaker of label small in pool main of provider cloud is closed"), 1);
}

// BRK-18
TEST_F(BreakersTest, OneThatOpensAgainSoonClosesAfterSeveralSuccesses) {
  StartClouds("breaker: {failures: 2, probe-after: 1, probe-max: 1}");
  OpenBreaker();
  Mend();
  auto closes = [&] {
    if (Record()) ProviderServing();
    return !Record();
  };
  ASSERT_TRUE(Await(closes));
  EXPECT_EQ(log_.Count("stays half-open"), 0);
  EXPECT_EQ(ProviderServing(), "cloud") << "the probe's node";
  OpenBreaker();
  EXPECT_EQ(Record()->relapses, 1);
  Mend();
  ASSERT_TRUE(Await(closes));
  for (std::string count : {"1 of 4", "2 of 4", "3 of 4"})
    EXPECT_EQ(log_.Count("half-open: " + count), 1) << count;
}

// BRK-5
TEST_F(BreakersTest, ALaunchThatFailedTriesNoMoreWhileAnotherPoolCanServe) {
  StartClouds("launch-retries: 50");
  Break();
  EXPECT_EQ(ProviderServing(), "other");
  EXPECT_EQ(Creates(), 3) << "the third failure opened the breaker";
  EXPECT_EQ(log_.Count("another one can take the request: the launch of small failed"), 1);
}

// BRK-8
TEST_F(BreakersTest, TheRequestForAProbeEndsWithIt) {
  StartClouds();
  OpenBreaker();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  EXPECT_EQ(ProviderServing(), "other");
  ASSERT_TRUE(Await([&] { return Record()->failed_probes == 1; }));
  auto requests = [&] { return time_.Run(client_store_->requests.List()); };
  EXPECT_TRUE(Await([&] { return requests().size() == 2; }))
      << "those of this test, which it has not deleted";
  EXPECT_EQ(Creates("other"), 2);
}

// BRK-8, BRK-10
TEST_F(BreakersTest, OneLaunchProbesAndItsFailureMakesThePauseLonger) {
  StartClouds();
  OpenBreaker();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  int creates = Creates();
  std::vector<RequestId> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(Request({"small"}));
  ASSERT_TRUE(Await([&] { return Record()->failed_probes == 1; }));
  EXPECT_EQ(Creates(), creates + 1) << "of five requests one was the probe";
  for (const RequestId& id : requests) EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(10)));
  EXPECT_GE(*Record()->next_probe - time_.loop().Now(), seconds(20));
  EXPECT_EQ(log_.Count("stays open, since a launch was tried and failed"), 1);
}

// BRK-8
TEST_F(BreakersTest, AProbeThatLaunchesNothingIsLeftToTheNextRequest) {
  StartClouds();
  OpenBreaker();
  Mend();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  Change([](drivers::FakeSimulation& settings) { settings.create_latency = minutes(5); });
  RequestId gone = Request({"small"});
  ASSERT_TRUE(AwaitState(gone, RequestState::kPending));
  DeleteRequest(gone);
  time_.Advance(minutes(6));
  ASSERT_TRUE(Await([&] { return !Record() || !Record()->prober.empty(); }));
}

// BRK-6
TEST_F(BreakersTest, WithoutAnotherPoolItIsTriedAnyway) {
  AddCloud();
  StartLauncher();
  Break();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed, minutes(10)));
  ASSERT_TRUE(Await([&] { return Record().has_value(); }));
  Mend();
  EXPECT_EQ(ProviderServing(), "cloud") << "at once";
  EXPECT_EQ(log_.Count("but no other pool can serve the request: it is tried"), 1);
  EXPECT_TRUE(Await([&] { return !Record(); })) << "its success closes the breaker";
}

// BRK-6
TEST_F(BreakersTest, TheRecordSaysThatItIsTriedAnyway) {
  AddCloud();
  StartLauncher();
  Break();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed, minutes(10)));
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed, minutes(10)));
  EXPECT_TRUE(Await([&] { return Record()->tried_anyway == 1; }));
}

// BRK-6
TEST_F(BreakersTest, WhenEveryPoolIsBrokenNoneIsLeftOut) {
  StartClouds();
  Break();
  Break("other");
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed, minutes(10)));
  ASSERT_TRUE(Record());
  ASSERT_TRUE(Record("other:main:small"));
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed, minutes(10)))
      << "it was tried, and did not wait for ever";
  EXPECT_EQ(Read(id)->declined_by.size(), 2u);
  Mend();
  EXPECT_EQ(ProviderServing(), "cloud");
}

// BRK-7
TEST_F(BreakersTest, WhatOnlyWaitsInThePoolIsGivenBack) {
  AddCloud({.provider = "priority: 10", .pool = "max-servers: 1"});
  AddCloud({.name = "other", .provider = "priority: 20"});
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId waiting =
      Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("cloud"); });
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  Breaker breaker;
  breaker.next_probe = time_.loop().Now() + hours(1);
  Put("/nodepool/breakers/cloud:main:small", ToJson(breaker));
  time_.Advance(minutes(1));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending) << "it asks for this provider";
  RequestId free = Request({"small"});
  EXPECT_TRUE(AwaitState(free, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(free).provider, ProviderName("other"));
  Return(nodes);
}

// BRK-12
TEST_F(BreakersTest, FalseTurnsItOff) {
  StartClouds("breaker: false");
  Break();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ProviderServing(), "other");
  EXPECT_FALSE(Record());
  EXPECT_GE(Creates(), 9) << "each request was tried there";
}

// BRK-12
TEST_F(BreakersTest, ThresholdsAreConfigured) {
  StartClouds("breaker: {failures: 7, probe-after: 100, probe-max: 100}");
  Break();
  EXPECT_EQ(ProviderServing(), "other");
  EXPECT_EQ(ProviderServing(), "other");
  EXPECT_FALSE(Record());
  EXPECT_EQ(ProviderServing(), "other");
  ASSERT_TRUE(Await([&] { return Record().has_value(); }));
  EXPECT_EQ(Record()->failures, 7);
}

// BRK-4
TEST_F(BreakersTest, SeveralLabelsOpenThePool) {
  StartClouds("", {"small", "large", "huge"});
  Break();
  EXPECT_EQ(ProviderServing("small"), "other");
  EXPECT_EQ(ProviderServing("large"), "other");
  ASSERT_TRUE(Await([&] { return Record("cloud:main").has_value(); }));
  int creates = Creates();
  EXPECT_EQ(ProviderServing("huge"), "other");
  EXPECT_EQ(Creates(), creates) << "the third label is not tried";
}

// BRK-15, BRK-16
TEST_F(BreakersTest, LaunchersShareWhatTheyLearn) {
  StartClouds();
  OpenBreaker();
  LauncherFixture::StartLauncher("np02");
  time_.Advance(seconds(1));
  StopLauncher(*launchers_.front());
  int creates = Creates();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(10)));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("other"));
  EXPECT_EQ(Creates(), creates);
  Mend();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  EXPECT_EQ(ProviderServing(), "other");
  EXPECT_TRUE(Await([&] { return !Record(); }));
}

// BRK-16
TEST_F(BreakersTest, OneLauncherProbesForAll) {
  StartClouds();
  LauncherFixture::StartLauncher("np02");
  OpenBreaker();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  int creates = Creates();
  std::vector<RequestId> requests;
  // The other launcher may be faster each time, until it is its turn.
  for (int i = 0; i < 15 && Record()->failed_probes == 0; ++i) {
    requests.push_back(Request({"small"}));
    time_.Advance(minutes(1));
  }
  EXPECT_EQ(Record()->failed_probes, 1);
  EXPECT_LE(Creates(), creates + 3) << "the attempts of one launch";
  for (const RequestId& id : requests) EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(10)));
}

// BRK-16
TEST_F(BreakersTest, TheProbeOfALauncherThatDiedIsTakenOver) {
  StartClouds();
  LauncherFixture::StartLauncher("np02");
  OpenBreaker();
  ASSERT_TRUE(Await([&] { return !Record()->prober.empty(); }));
  std::string prober = Record()->prober;
  Kill(*launchers_[prober.find("np01") != std::string::npos ? 0 : 1]);
  EXPECT_TRUE(Await([&] { return !Record()->prober.empty() && Record()->prober != prober; }, minutes(5)));
}

// BRK-17
TEST_F(BreakersTest, WhatIsNotConfiguredAnyMoreIsClosed) {
  StartClouds();
  OpenBreaker();
  RemoveClouds();
  AddCloud({.labels = {"large"}, .provider = "priority: 10"});
  AddCloud({.name = "other", .provider = "priority: 20"});
  Load();
  launchers_.front()->launcher->Reconfigure(config_);
  EXPECT_TRUE(Await([&] { return !Record(); }));
}

// BRK-17: the configuration changed while no launcher ran.
TEST_F(BreakersTest, WhatIsNotConfiguredWhenALauncherStartsIsClosed) {
  Breaker breaker;
  breaker.next_probe = time_.loop().Now();
  Put("/nodepool/breakers/cloud:main:large", ToJson(breaker));
  StartClouds();
  EXPECT_TRUE(Await([&] { return !Record("cloud:main:large"); }));
}

// BRK-17
TEST_F(BreakersTest, ARecordOfNobodysProviderGoesAfterADay) {
  StartClouds();
  Breaker breaker;
  breaker.next_probe = time_.loop().Now();
  Put("/nodepool/breakers/former", ToJson(breaker));
  time_.Advance(hours(20));
  EXPECT_TRUE(Record("former"));
  time_.Advance(hours(5));
  EXPECT_FALSE(Record("former"));
}

// What is wrong with the servers of `cloud` at a time, which began with the test.
struct Weather {
  double broken_share = 0;  // of the servers that go into an error state when they should become active
  std::string flavor;       // of those; empty: all
  bool is_full = false;     // the cloud refuses all servers for quota
};

struct Outage {
  const char* name;
  std::function<Weather(Duration)> weather;
  std::vector<std::string> labels = {"small"};
  std::optional<Duration> mended = {};  // from then on it works
  bool is_partial = false;              // most launches work, so requests are not kept away all the time
};
void PrintTo(const Outage& outage, std::ostream* stream) { *stream << outage.name; }

constexpr Duration kBoot = seconds(20);
constexpr Duration kBetweenRequests = seconds(10);
constexpr Duration kStep = milliseconds(500);
constexpr Duration kTest = hours(2);
constexpr Duration kAsking = kTest - minutes(5);
constexpr int kKnown = 5;  // failures after which the breaker should have seen enough

bool IsNight(Duration at) { return at >= minutes(20) && at < minutes(60); }
bool IsOddMinute(Duration at) { return at / minutes(1) % 2 == 1; }

const Outage kOutages[] = {
    {"everything fails", [](Duration) { return Weather{1}; }},
    {"3 of 10 fail", [](Duration) { return Weather{0.3}; }, {"small"}, {}, true},
    {"one label fails",
     [](Duration) {
       return Weather{1, "Unreal Flavor"};
     },
     {"small", "large"}},
    {"quota refused", [](Duration) { return Weather{.is_full = true}; }},
    {"at night", [](Duration at) { return Weather{IsNight(at) ? 1.0 : 0.0}; }, {"small"}, minutes(60)},
    {"each other minute", [](Duration at) { return Weather{IsOddMinute(at) ? 1.0 : 0.0}; }},
};

// Two clouds, of which the preferred one fails in some way: requests should not feel it.
class BreakerOutagesTest : public CloudTest, public ::testing::WithParamInterface<Outage> {
 protected:
  struct Asked {
    RequestId id;
    SteadyTime at;
    bool is_known;  // what fails had failed often enough
  };

  void StartClouds() {
    std::string simulation = "create-latency: 20, limits: {instances: 100, cores: 400}";
    std::string large = ", {name: other, labels: [{name: large, cloud-image: image, flavor-name: Unreal}]}";
    if (GetParam().labels.size() == 1) large.clear();
    if (!large.empty()) SetLabel("large", "");
    AddCloud({.provider = "priority: 10", .simulation = simulation, .more_pools = large});
    AddCloud({.name = "other", .provider = "priority: 20", .simulation = simulation, .more_pools = large});
    StartLauncher();
    begun_ = time_.loop().SteadyNow();
  }
  Duration now() { return time_.loop().SteadyNow() - begun_; }

  void SetWeather() {
    Weather weather = GetParam().weather(now());
    cloud().BreakServers(weather.broken_share, weather.flavor);
    Change([&](drivers::FakeSimulation& settings) { settings.limits.instances = weather.is_full ? 0 : 100; });
  }
  void Ask() {
    const std::vector<std::string>& labels = GetParam().labels;
    asked_.push_back(
        {Request({labels[requests_++ % labels.size()]}), time_.loop().SteadyNow(), Failures() >= kKnown});
  }
  // Takes and gives back what is there.
  void Consume() {
    std::erase_if(asked_, [this](const Asked& asked) {
      std::optional<NodeRequest> request = Read(asked.id);
      if (!request || request->state != RequestState::kFulfilled) return false;
      served_by_[NodeOf(asked.id).provider.value]++;
      Duration waited = time_.loop().SteadyNow() - asked.at;
      (asked.is_known ? later_ : first_).push_back(std::max(Duration(0), waited - kBoot));
      std::vector<store::LockedNode> nodes = Take(asked.id);
      Return(nodes);
      return true;
    });
  }
  void NoteClosing() {
    if (!GetParam().mended || closed_after_ || now() < *GetParam().mended || log_.Count("is closed") == 0)
      return;
    closed_after_ = now() - *GetParam().mended;
  }
  int Failures() {
    return static_cast<int>(cloud().create_attempts()) - served_by_["cloud"] -
           static_cast<int>(cloud().servers().size());
  }
  static double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
  static double Part(std::vector<Duration> waits, double part) {
    if (waits.empty()) return 0;
    std::ranges::sort(waits);
    return Seconds(waits[std::min(waits.size() - 1, static_cast<std::size_t>(part * waits.size()))]);
  }

  SteadyTime begun_{};
  std::size_t requests_ = 0;
  std::vector<Asked> asked_;
  std::map<std::string, int> served_by_;
  std::vector<Duration> first_;  // beyond the boot's
  std::vector<Duration> later_;
  std::optional<Duration> closed_after_;  // it was mended
  log::Capture log_;
};

// BRK-11. The rows of the table in docs/spec/breaker.md.
TEST_P(BreakerOutagesTest, RequestsDoNotFeelIt) {
  StartClouds();
  SteadyTime next = time_.loop().SteadyNow();
  while (now() < kTest) {
    SetWeather();
    if (now() < kAsking && time_.loop().SteadyNow() >= next) {
      Ask();
      next += kBetweenRequests;
    }
    time_.Advance(kStep);
    Consume();
    NoteClosing();
  }
  int opened = log_.Count("is open: ");
  int probes = log_.Count("since a launch was tried and failed");
  int wasted = Failures() - probes;
  std::string closed = closed_after_ ? fmt::format("{:.0f}", Seconds(*closed_after_)) : "";
  fmt::print("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {} |\n", GetParam().name, opened, wasted,
             probes, Part(first_, 1), Part(later_, 0.5), Part(later_, 0.99), closed);
  EXPECT_EQ(asked_.size(), 0u) << "of " << requests_ << " the last ones wait for their boots";
  EXPECT_LE(wasted, 10 * std::max(1, opened));
  EXPECT_LT(Part(later_, 0.5), 1);
  EXPECT_LT(Part(later_, 0.99), GetParam().is_partial ? 3 * Seconds(kBoot) + 1 : 1);
  EXPECT_LE(closed_after_.value_or(GetParam().mended ? hours(1) : Duration(0)), minutes(13) + kBoot);
}

INSTANTIATE_TEST_SUITE_P(All, BreakerOutagesTest,
                         ::testing::ValuesIn(std::begin(kOutages),
                                             std::begin(kOutages) + testing::Often(std::size(kOutages), 1)));

}  // namespace

}  // namespace nodepool::launcher
