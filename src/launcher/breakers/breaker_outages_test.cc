#include <fmt/format.h>

#include <iterator>

#include "base/testing/often.h"
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

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
                                             std::begin(kOutages) + testing::Often(std::size(kOutages), 2)));

}  // namespace
}  // namespace nodepool::launcher
