#include "sim/world.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <ostream>
#include <vector>

#include "base/log/logging.h"
#include "base/text.h"

namespace nodepool::sim {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::MemoryZk;

constexpr int kConsumers = 2;
// The max. age of a launcher's view of a cloud's quota; until then it may decline what did not fit beside
// machines of other users.
constexpr Duration kQuotaAge = seconds(330);
// Many times what any simulation needs that is not caught in a loop.
constexpr std::uint64_t kMaxSteps = 400'000;

std::uint64_t Mix(std::uint64_t seed, std::uint64_t salt) {
  return (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (salt + 1) * 0xc2b2ae3d27d4eb4fULL;
}

testing::MemoryZkOptions ZkOptions(const Scenario& scenario, Random& delays) {
  testing::MemoryZkOptions options;
  options.latency = scenario.zk_latency;
  options.jitter = scenario.zk_latency / 2;
  options.random = &delays;
  return options;
}

}  // namespace

World::World(std::uint64_t seed, BlockingPool& blocking_pool)
    : scenario_(seed),
      random_(Mix(seed, 1)),
      delays_(Mix(seed, 2)),
      loop_(stepper_.loop()),
      zk_(loop_, ZkOptions(scenario_, delays_)),
      clouds_(loop_, random_, scenario_.clouds, scenario_.manners),
      inspector_(scenario_, stepper_.clock(), zk_, clouds_),
      blocking_pool_(blocking_pool),
      slots_(scenario_.launchers.size()),
      tasks_(loop_, log::Logger("sim.world")) {}

World::~World() = default;

void World::Follow(std::function<void(Duration at, std::string text)> trace) {
  inspector_.trace = [this, trace](std::string text) {
    trace(stepper_.now().time_since_epoch(), std::move(text));
  };
  log_.emplace();
  stepper_.AfterEach([this] {
    for (const log::Record& record : log_->records()) {
      inspector_.trace(
          fmt::format("  {} {}: {}", log::ToString(record.level), record.logger, log::Annotated(record)));
    }
    log_.emplace();
  });
}

void World::Trace(std::string text) {
  if (inspector_.trace) inspector_.trace("* " + text);
}

std::string World::Tasks() const {
  std::vector<std::string> texts;
  for (const TaskInfo& task : loop_.tasks().tasks()) {
    std::string text = task.name;
    for (const AwaitNote& note : task.awaits) text += fmt::format(" / {} {}", note.what(), note.about());
    texts.push_back(std::move(text));
  }
  return Join(texts, ", ");
}

void World::TraceLimits() {
  for (const auto& [name, cloud] : scenario_.clouds)
    Trace(fmt::format("{} is {} and has {} instances, {} cores", name, scenario_.manners.at(name).name,
                      cloud.limits.instances, cloud.limits.cores));
  for (const auto& [key, pool] : scenario_.pools) {
    std::vector<std::string> labels;
    for (const auto& [label, config] : pool->labels) labels.push_back(label.value);
    std::vector<std::string> limits;
    driver::QuotaInformation limit = pool->Limit();
    for (const auto& [resource, amount] : limit.resources())
      limits.push_back(fmt::format("{}={}", resource, amount));
    Trace(fmt::format("{}/{} offers {} within {}{}", key.provider, key.pool, Join(labels, ","),
                      fmt::join(limits, " "), pool->ignore_provider_quota ? ", ignoring the quota" : ""));
  }
}

RunResult World::Run() {
  TraceLimits();
  bool is_good = StartAll() && BeBusy() && CalmDown() && Settle("after the trouble") && Probe() &&
                 Settle("after the probes") && StopAll();
  RunResult run;
  run.violation = inspector_.violation();
  if (!is_good && !run.violation) run.violation = Inspector::Violation{"it ended early", {}};
  run.tally = tally_;
  run.lasted = stepper_.now().time_since_epoch();
  run.steps = stepper_.steps();
  run.crashes = crashes_;
  return run;
}

bool World::RunUntil(std::function<bool()> is_reached, Duration limit, std::string what) {
  bool was_reached = false;
  auto is_over = [&] {
    Tend();
    was_reached = is_reached();
    if (stepper_.steps() > kMaxSteps) inspector_.Report("it never ends", {});
    return was_reached || inspector_.violation();
  };
  stepper_.RunUntil(is_over, limit);
  if (!was_reached && !inspector_.violation() && !what.empty()) inspector_.Report(what, {});
  return !inspector_.violation() && (was_reached || what.empty());
}

// Destroys dead processes and starts their successors.
void World::Tend() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.process) TendTo(slot);
    if (!slot.process && stepper_.now() >= slot.restart_at) StartLauncher(i);
  }
}

// Crashes the process when that is due, and destroys it when it has ended.
void World::TendTo(Slot& slot) {
  if (slot.crash_at_step && stepper_.steps() >= *slot.crash_at_step) {
    slot.crash_at_step.reset();
    slot.process->Crash(AnyUnderWay());
  }
  constexpr Duration kEndLimit = seconds(100);
  bool is_stuck = slot.process->is_ending() && stepper_.now() - slot.process->ending_since() > kEndLimit;
  if (is_stuck && !slot.process->is_over()) {
    inspector_.Report(fmt::format("{} does not end; left are: {}", slot.process->name(), Tasks()), {});
    return;
  }
  if (!slot.process->is_over()) return;
  stepper_.RunReady();
  slot.process.reset();
}

void World::StartLauncher(std::size_t index) {
  Slot& slot = slots_[index];
  ++slot.life;
  slot.crash_at_step.reset();
  LauncherProcess::Environment environment{loop_, zk_, clouds_, inspector_, random_, blocking_pool_};
  std::uint64_t seed = Mix(scenario_.seed, 1000 * (index + 1) + static_cast<std::uint64_t>(slot.life));
  slot.process = std::make_unique<LauncherProcess>(
      environment, seed, fmt::format("np{}.{}", index + 1, slot.life), scenario_.launchers[index]);
  if (is_troubled_) slot.process->zk().SetFaultRate(scenario_.trouble.zk_fault_rate);
}

bool World::IsServing() const {
  return std::ranges::all_of(slots_,
                             [](const Slot& slot) { return slot.process && slot.process->is_serving(); });
}

std::unique_ptr<Consumer> World::NewConsumer() {
  int number = ++consumers_made_;
  return std::make_unique<Consumer>(loop_, zk_, random_, inspector_,
                                    Mix(scenario_.seed, 500 + static_cast<std::uint64_t>(number)),
                                    fmt::format("zuul{}", number), tally_);
}

std::unique_ptr<ImageBuilder> World::NewImageBuilder() {
  int number = ++image_builders_made_;
  ImageBuilder::Environment environment{loop_, zk_, random_, inspector_, clouds_, scenario_, blocking_pool_};
  return std::make_unique<ImageBuilder>(environment,
                                        Mix(scenario_.seed, 700 + static_cast<std::uint64_t>(number)),
                                        fmt::format("nb{}", number));
}

bool World::StartAll() {
  if (scenario_.has_images) image_builder_ = NewImageBuilder();
  for (int i = 0; i < kConsumers; ++i) consumers_.push_back(NewConsumer());
  for (auto& [provider, weather] : clouds_.weather) weather.max_latency = scenario_.trouble.api_latency;
  return RunUntil([this] { return IsServing(); }, minutes(2), "the launchers do not start");
}

bool World::BeBusy() {
  is_troubled_ = true;
  for (Slot& slot : slots_) slot.process->zk().SetFaultRate(scenario_.trouble.zk_fault_rate);
  for (auto& [provider, weather] : clouds_.weather) {
    weather.fault_rate = scenario_.trouble.api_fault_rate;
    weather.throttle_rate = scenario_.manners.at(provider).throttle_rate;
  }
  tasks_.Spawn("arrivals", Arrive());
  if (scenario_.trouble.pause > Duration(0)) tasks_.Spawn("trouble", BreakThings());
  return RunUntil([] { return false; }, scenario_.busy, "");
}

bool World::CalmDown() {
  Trace("no more faults");
  is_troubled_ = false;
  boost::asio::post(loop_.context(), [this] { tasks_.CancelAll(); });
  zk_.SetLatency(scenario_.zk_latency);
  for (auto& [provider, weather] : clouds_.weather) {
    weather.is_out = false;
    weather.fault_rate = 0;
    weather.throttle_rate = 0;
    weather.without_quota.clear();
    weather.without_capacity.clear();
    clouds_.views[provider].old_lists = 0;
    drivers::FakeCloud& cloud = *clouds_.all.Find(provider);
    cloud.FailNextCreates(0);
    cloud.FailNextCreatesWithServer(0);
    cloud.HangNextCreates(0);
    cloud.FailNextDeletes(0);
  }
  for (Slot& slot : slots_) {
    slot.restart_at = {};
    slot.crash_at_step.reset();
    if (!slot.process) continue;
    slot.process->zk().SetFaultRate(0);
    slot.process->zk().CallAfter(0, nullptr);
    slot.process->Reconfigure(scenario_.launchers[static_cast<std::size_t>(&slot - slots_.data())]);
    if (!slot.process->is_ending()) slot.process->Reconnect();
  }
  return RunUntil([this] { return tasks_.size() == 0; }, minutes(1), "the world does not calm down") &&
         RunUntil([this] { return IsServing(); }, minutes(5), "the launchers do not come back") &&
         FinishImages() && RunUntil([] { return false; }, kQuotaAge, "");
}

bool World::FinishImages() {
  if (!image_builder_) return true;
  image_builder_->CalmDown();
  return RunUntil([this] { return image_builder_->is_idle(); }, minutes(60), "images are not validated");
}

bool World::Settle(std::string when) {
  constexpr Duration kCheckInterval = seconds(5);
  SteadyTime end = stepper_.now() + minutes(40);
  while (true) {
    if (!RunUntil([] { return false; }, kCheckInterval, "")) return false;
    bool is_idle = std::ranges::all_of(consumers_, [](const auto& consumer) { return consumer->is_idle(); });
    auto unsettled = FindUnsettled(scenario_, inspector_, clouds_);
    if (is_idle && !unsettled) return true;
    if (stepper_.now() < end) continue;
    if (!unsettled) unsettled = Inspector::Violation{"a consumer still waits", {}};
    inspector_.Report(when + ": " + unsettled->text, unsettled->ids);
    return false;
  }
}

bool World::Probe() {
  Trace("everything is settled; probes");
  for (const auto& [label, config] : scenario_.common.labels) {
    for (bool reuse : {false, true}) {
      RequestPlan plan;
      plan.labels = {label};
      plan.reuse = reuse;
      plan.use = seconds(5);
      if (!ProbeOne(std::move(plan))) return false;
    }
  }
  RequestPlan unknown;
  unknown.labels = {LabelName("unknown")};
  RequestPlan huge;
  huge.labels.assign(50, LabelName("small"));
  return ProbeOne(std::move(unknown)) && ProbeOne(std::move(huge));
}

bool World::ProbeOne(RequestPlan plan) {
  bool is_servable = scenario_.IsServable(plan.labels);
  Consumer::Tally before = tally_;
  std::string what = fmt::format("a probe for {} nodes of {}{}", plan.labels.size(), plan.labels.front(),
                                 plan.reuse ? "" : " (new ones)");
  Consumer& consumer = *consumers_.front();
  consumer.Submit(std::move(plan));
  if (!RunUntil([&] { return consumer.is_idle(); }, minutes(20), what + " is not answered")) return false;
  bool was_served = tally_.fulfilled > before.fulfilled;
  if (was_served == is_servable) return true;
  inspector_.Report(what + (is_servable ? " has failed" : " was served"), {});
  return false;
}

bool World::StopAll() {
  Trace("everything stops");
  for (Slot& slot : slots_) {
    slot.restart_at = SteadyTime::max();
    slot.process->Stop();
  }
  auto all_over = [this] {
    return std::ranges::none_of(slots_, [](const Slot& slot) { return !!slot.process; });
  };
  if (!RunUntil(all_over, minutes(3), "the launchers do not stop")) return false;
  for (auto& consumer : consumers_) tasks_.Spawn("close", consumer->Close());
  if (image_builder_) tasks_.Spawn("close", image_builder_->Close());
  if (!RunUntil([this] { return tasks_.size() == 0; }, minutes(1), "the consumers do not close"))
    return false;
  stepper_.RunReady();
  if (std::string left = Tasks(); !left.empty()) inspector_.Report("tasks are left: " + left, {});
  if (!inspector_.requests().empty()) inspector_.Report("a request outlives its session", {});
  if (!inspector_.pools().empty()) inspector_.Report("a stopped launcher is still registered", {});
  return !inspector_.violation();
}

Task<> World::Arrive() {
  SteadyTime start = stepper_.now();
  for (const RequestPlan& plan : scenario_.requests) {
    co_await loop_.SleepUntil(start + plan.at);
    consumers_[random_.Below(consumers_.size())]->Submit(plan);
  }
}

namespace {

// Without threads, which virtual time does not wait for.
BlockingPool& SharedPool() {
  static BlockingPool pool(0);
  return pool;
}

// The events, each line with its virtual time.
class Story {
 public:
  struct Line {
    Duration at;
    std::string text;
  };

  void Add(Duration at, std::string text) { lines_.push_back({at, std::move(text)}); }
  const std::vector<Line>& lines() const { return lines_; }

  static std::string Print(const Line& line) {
    return fmt::format("{:>10.3f}  {}", std::chrono::duration<double>(line.at).count(), line.text);
  }

 private:
  std::vector<Line> lines_;
};

RunResult RunWorld(std::uint64_t seed, Story* story) {
  auto world = std::make_unique<World>(seed, SharedPool());
  if (story != nullptr) {
    world->Follow([story](Duration at, std::string text) { story->Add(at, std::move(text)); });
  }
  RunResult run = world->Run();
  // After a violation tasks are still running, so the world is leaked.
  if (run.violation) (void)world.release();
  return run;
}

bool Concerns(const std::string& text, const std::vector<std::string>& ids) {
  return std::ranges::any_of(
      ids, [&](const std::string& id) { return !id.empty() && text.find(id) != std::string::npos; });
}

// Prints the events that concern the violation, and what happened to the processes meanwhile.
void PrintStory(const Story& story, const Inspector::Violation& violation, std::ostream& out) {
  constexpr std::size_t kMaxEvents = 60;
  std::vector<std::string> chosen;
  for (const Story::Line& line : story.lines()) {
    bool is_fate = line.text.starts_with("* ");
    if (is_fate || Concerns(line.text, violation.ids)) chosen.push_back(Story::Print(line));
  }
  std::size_t first = chosen.size() > kMaxEvents ? chosen.size() - kMaxEvents : 0;
  for (std::size_t i = first; i < chosen.size(); ++i) fmt::print(out, "  {}\n", chosen[i]);
}

void Add(Consumer::Tally& sum, const Consumer::Tally& more) {
  sum.submitted += more.submitted;
  sum.fulfilled += more.fulfilled;
  sum.failed += more.failed;
  sum.withdrawn += more.withdrawn;
}

}  // namespace

RunResult Simulate(std::uint64_t seed) {
  log::SetLevel("", log::Level::kCritical);
  return RunWorld(seed, nullptr);
}

RunResult Narrate(std::uint64_t seed, std::ostream& out) {
  log::SetLevel("", log::Level::kInfo);
  Story story;
  RunResult run = RunWorld(seed, &story);
  for (const Story::Line& line : story.lines()) fmt::print(out, "{}\n", Story::Print(line));
  fmt::print(
      out, "seed {}: {} requests, {} fulfilled, {} failed, {} crashes, {:.0f} s of virtual time, {} steps\n",
      seed, run.tally.submitted, run.tally.fulfilled, run.tally.failed, run.crashes,
      std::chrono::duration<double>(run.lasted).count(), run.steps);
  fmt::print(out, "{}\n", run.violation ? run.violation->text : "good");
  return run;
}

BatchResult RunBatch(Batch batch, std::uint64_t max_failures, std::ostream& out) {
  BatchResult result;
  Loop watch;  // on the machine's clock
  SteadyTime start = watch.SteadyNow();
  for (std::uint64_t seed = batch.first; seed < batch.first + batch.count; ++seed) {
    RunResult run = Simulate(seed);
    ++result.seeds;
    result.crashes += run.crashes;
    Add(result.tally, run.tally);
    if (!run.violation) continue;
    ++result.failures;
    log::SetLevel("", log::Level::kInfo);
    Story story;
    RunResult again = RunWorld(seed, &story);
    fmt::print(out, "seed {}: {}\n", seed, run.violation->text);
    PrintStory(story, *run.violation, out);
    if (!again.violation || again.violation->text != run.violation->text)
      fmt::print(out, "  (the replay went differently: {})\n",
                 again.violation ? again.violation->text : "good");
    fmt::print(out, "replay: launcher_simulation --seed {}\n\n", seed);
    if (result.failures >= max_failures) break;
  }
  result.seconds = std::chrono::duration<double>(watch.SteadyNow() - start).count();
  return result;
}

}  // namespace nodepool::sim
