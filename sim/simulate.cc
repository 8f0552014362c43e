#include "sim/simulate.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <vector>

#include "base/log/logging.h"

namespace nodepool::sim {
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

Outcome RunWorld(std::uint64_t seed, Story* story) {
  auto world = std::make_unique<World>(seed, SharedPool());
  if (story != nullptr) {
    world->Follow([story](Duration at, std::string text) { story->Add(at, std::move(text)); });
  }
  Outcome outcome = world->Run();
  // After a violation tasks are still running, so the world is leaked.
  if (outcome.violation) (void)world.release();
  return outcome;
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

Outcome Simulate(std::uint64_t seed) {
  log::SetLevel("", log::Level::kCritical);
  return RunWorld(seed, nullptr);
}

Outcome Narrate(std::uint64_t seed, std::ostream& out) {
  log::SetLevel("", log::Level::kInfo);
  Story story;
  Outcome outcome = RunWorld(seed, &story);
  for (const Story::Line& line : story.lines()) fmt::print(out, "{}\n", Story::Print(line));
  fmt::print(
      out, "seed {}: {} requests, {} fulfilled, {} failed, {} crashes, {:.0f} s of virtual time, {} steps\n",
      seed, outcome.tally.submitted, outcome.tally.fulfilled, outcome.tally.failed, outcome.crashes,
      std::chrono::duration<double>(outcome.lasted).count(), outcome.steps);
  fmt::print(out, "{}\n", outcome.violation ? outcome.violation->text : "good");
  return outcome;
}

BatchResult RunBatch(Batch batch, std::uint64_t max_failures, std::ostream& out) {
  BatchResult result;
  Loop watch;  // on the machine's clock
  SteadyTime start = watch.SteadyNow();
  for (std::uint64_t seed = batch.first; seed < batch.first + batch.count; ++seed) {
    Outcome outcome = Simulate(seed);
    ++result.seeds;
    result.crashes += outcome.crashes;
    Add(result.tally, outcome.tally);
    if (!outcome.violation) continue;
    ++result.failures;
    log::SetLevel("", log::Level::kInfo);
    Story story;
    Outcome again = RunWorld(seed, &story);
    fmt::print(out, "seed {}: {}\n", seed, outcome.violation->text);
    PrintStory(story, *outcome.violation, out);
    if (!again.violation || again.violation->text != outcome.violation->text)
      fmt::print(out, "  (the replay went differently: {})\n",
                 again.violation ? again.violation->text : "good");
    fmt::print(out, "replay: launcher_simulation --seed {}\n\n", seed);
    if (result.failures >= max_failures) break;
  }
  result.seconds = std::chrono::duration<double>(watch.SteadyNow() - start).count();
  return result;
}

}  // namespace nodepool::sim
