#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/processes.h"
#include "sim/settled.h"

namespace nodepool::sim {

// The result of one seed.
struct RunResult {
  std::optional<Inspector::Violation> violation;
  Consumer::Tally tally;
  Duration lasted{0};  // virtual
  std::uint64_t steps = 0;
  int crashes = 0;
};

// One simulation: launchers, consumers, clouds and an ensemble on one virtual clock.
//
//   busy   requests arrive, faults happen
//   calm   no more faults; what is down is started again
//   settled   everything is served and cleaned up
//   probed    each kind of request is served or failed as it should be
//   stopped  the launchers stop gracefully and leave nothing running
class World {
 public:
  // A world that was left with a violation cannot be destroyed: tasks still run in it.
  World(std::uint64_t seed, BlockingPool& blocking_pool);
  ~World();

  // Traces every event in words, including the processes' log lines; call before Run(). Faults of processes
  // and clouds begin with "* ".
  void Follow(std::function<void(Duration at, std::string text)> trace);
  RunResult Run();

 private:
  // A launcher over all its lives.
  struct Slot {
    int life = 0;
    std::unique_ptr<LauncherProcess> process;
    SteadyTime restart_at{};
    std::optional<std::uint64_t> crash_at_step;
  };

  // All return false on a violation, which the inspector then has.
  bool RunUntil(std::function<bool()> is_reached, Duration limit, std::string what);
  bool StartAll();
  bool BeBusy();
  bool CalmDown();
  bool FinishImages();
  bool Settle(std::string when);
  bool Probe();
  bool ProbeOne(RequestPlan plan);
  bool StopAll();

  void Trace(std::string text);
  void TraceLimits();
  std::string Tasks() const;
  void Tend();
  void TendTo(Slot& slot);
  void StartLauncher(std::size_t index);
  bool IsServing() const;
  std::unique_ptr<Consumer> NewConsumer();

  Task<> Arrive();
  Task<> BreakThings();
  void BreakOne();
  void StopOne(Slot& slot);
  void ExpireSession(Slot& slot);
  void CrashOne(Slot& slot);
  Task<> CutOff(std::size_t index, int life, Duration duration);
  Task<> Outage(ProviderName provider, Duration duration);
  Task<> ShowOldLists(ProviderName provider, Duration duration);
  Task<> Refuse(ProviderName provider, std::map<LabelName, int> ApiWeather::*of, Duration duration);
  Task<> Occupy(ProviderName provider, Duration duration);
  void TakeMachine(const ProviderName& provider);
  void ReplaceConsumer();
  std::unique_ptr<ImageBuilder> NewImageBuilder();
  void ReplaceImageBuilder();
  Slot& AnySlot() { return slots_[random_.Below(slots_.size())]; }
  ProviderName AnyProvider();
  Duration Time(double low, double high);
  testing::MemoryZk::UnderWay AnyUnderWay();

  Scenario scenario_;
  SeededRandom random_;
  SeededRandom delays_;
  Stepper stepper_;
  Loop& loop_;
  testing::MemoryZk zk_;
  Clouds clouds_;
  Inspector inspector_;
  BlockingPool& blocking_pool_;
  bool is_troubled_ = false;
  Consumer::Tally tally_;
  int consumers_made_ = 0;
  int crashes_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::vector<std::unique_ptr<Consumer>> vanished_;
  std::unique_ptr<ImageBuilder> image_builder_;  // null: the scenario has no images
  std::vector<std::unique_ptr<ImageBuilder>> vanished_image_builders_;
  int image_builders_made_ = 0;
  TaskGroup tasks_;
  std::optional<log::Capture> log_;
};

// Runs one seed silently.
RunResult Simulate(std::uint64_t seed);

// Runs one seed and prints every event of it, the launchers' log lines included.
RunResult Narrate(std::uint64_t seed, std::ostream& out);

struct Batch {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};
struct BatchResult {
  std::uint64_t seeds = 0;
  std::uint64_t failures = 0;
  Consumer::Tally tally;
  int crashes = 0;
  double seconds = 0;  // real time
};
// Runs a batch; for every failing seed prints the violation, the events of the records involved, and how to
// replay it. Gives up after `max_failures`.
BatchResult RunBatch(Batch batch, std::uint64_t max_failures, std::ostream& out);

}  // namespace nodepool::sim
