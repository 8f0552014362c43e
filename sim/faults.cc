#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "async/task.h"
#include "sim/world.h"

namespace nodepool::sim {

using testing::MemoryZk;

Task<> World::BreakThings() {
  double pause = std::chrono::duration<double>(scenario_.trouble.pause).count();
  while (true) {
    co_await loop_.SleepFor(Time(0, 2 * pause));
    BreakOne();
  }
}

namespace {

// What can go wrong, how often it does beside the others, and what it does then.
struct Fault {
  std::uint64_t weight;
  std::function<void()> strike;
};

}  // namespace

void World::BreakOne() {
  std::size_t index = random_.Below(slots_.size());
  Slot& slot = slots_[index];
  const ProviderName provider = AnyProvider();
  drivers::FakeCloud& cloud = *clouds_.all.Find(provider);
  int few = 1 + static_cast<int>(random_.Below(3));
  bool is_running = slot.process && !slot.process->is_ending();
  auto refuse = [&](std::map<LabelName, int> ApiWeather::*of) {
    tasks_.Spawn("refuse", Refuse(provider, of, Time(1, 60)));
  };
  const std::vector<Fault> faults = {
      {3, [&] { CrashOne(slot); }},
      {1,
       [&] {
         if (is_running) StopOne(slot);
       }},
      {2, [&] { tasks_.Spawn("cut off", CutOff(index, slot.life, Time(0.1, 6))); }},
      {1, [&] { tasks_.Spawn("cut off", CutOff(index, slot.life, Time(8, 25))); }},
      {1,
       [&] {
         if (is_running) ExpireSession(slot);
       }},
      {1, [&] { tasks_.Spawn("outage", Outage(provider, Time(2, 60))); }},
      {1,
       [&] {
         for (; few > 0; --few) tasks_.Spawn("occupy", Occupy(provider, Time(5, 60)));
       }},
      {1, [&] { ReplaceConsumer(); }},
      {1, [&] { zk_.SetLatency(Time(0, 0.2)); }},
      {1, [&] { random_.Below(2) == 0 ? cloud.FailNextCreates(few) : cloud.FailNextCreatesWithServer(few); }},
      {1, [&] { random_.Below(2) == 0 ? cloud.HangNextCreates(1) : cloud.FailNextDeletes(few); }},
      {2,
       [&] {
         if (slot.process) slot.process->Reconfigure(scenario_.Changed(index, random_));
       }},
      {2, [&] { TakeMachine(provider); }},
      {1, [&] { refuse(&ApiWeather::without_quota); }},
      {1, [&] { refuse(&ApiWeather::without_capacity); }},
      {1, [&] { tasks_.Spawn("old lists", ShowOldLists(provider, Time(1, 30))); }},
      {1, [&] { ReplaceImageBuilder(); }},
  };
  auto sum = [](std::uint64_t so_far, const Fault& fault) { return so_far + fault.weight; };
  std::uint64_t drawn = random_.Below(std::accumulate(faults.begin(), faults.end(), std::uint64_t{0}, sum));
  for (const Fault& fault : faults) {
    if (drawn < fault.weight) return fault.strike();
    drawn -= fault.weight;
  }
}

void World::StopOne(Slot& slot) {
  slot.restart_at = stepper_.now() + Time(1, 60);
  slot.process->Stop();
}

void World::ExpireSession(Slot& slot) {
  Trace("the session of " + slot.process->name() + " expires");
  slot.process->zk().ExpireSession();
}

void World::CrashOne(Slot& slot) {
  if (!slot.process || slot.process->is_dead()) return;
  ++crashes_;
  slot.restart_at = stepper_.now() + Time(1, 60);
  if (random_.Below(2) == 0) {
    slot.process->CrashAfter(static_cast<int>(random_.Below(30)), AnyUnderWay());
  } else {
    slot.crash_at_step = stepper_.steps() + random_.Below(300);
  }
}

Task<> World::CutOff(std::size_t index, int life, Duration duration) {
  LauncherProcess* process = slots_[index].process.get();
  if (process == nullptr || process->is_ending()) co_return;
  process->Disconnect(AnyUnderWay());
  co_await loop_.SleepFor(duration);
  // It may have died meanwhile.
  if (slots_[index].life == life && slots_[index].process) slots_[index].process->Reconnect();
}

Task<> World::Outage(ProviderName provider, Duration duration) {
  Trace(provider.value + " cannot be reached");
  clouds_.weather[provider].is_out = true;
  co_await loop_.SleepFor(duration);
  clouds_.weather[provider].is_out = false;
  Trace(provider.value + " can be reached again");
}

// Lists go back to what they showed before.
Task<> World::ShowOldLists(ProviderName provider, Duration duration) {
  Trace(provider.value + " shows old lists");
  ++clouds_.views[provider].old_lists;
  co_await loop_.SleepFor(duration);
  --clouds_.views[provider].old_lists;
}

// A cloud has nothing of one label for a while.
Task<> World::Refuse(ProviderName provider, std::map<LabelName, int> ApiWeather::*of, Duration duration) {
  auto label = scenario_.common.labels.begin();
  std::advance(label, random_.Below(scenario_.common.labels.size()));
  const LabelName name = label->first;
  Trace(fmt::format("{} refuses {}", provider, name));
  ++(clouds_.weather[provider].*of)[name];
  co_await loop_.SleepFor(duration);
  std::map<LabelName, int>& refused = clouds_.weather[provider].*of;
  if (--refused[name] <= 0) refused.erase(name);
  Trace(fmt::format("{} no longer refuses {}", provider, name));
}

namespace {

Task<std::string> CreateForeign(drivers::FakeCloud& cloud) {
  std::string id = cloud.CreateServer({.name = "foreign", .flavor = "Small"});
  co_return id;
}

Task<> DeleteForeign(drivers::FakeCloud& cloud, std::string id) {
  while (cloud.servers().contains(id)) co_await Attempt(cloud.DeleteServer(id));
}

}  // namespace

// A machine of another user takes capacity, if there is any.
Task<> World::Occupy(ProviderName provider, Duration duration) {
  drivers::FakeCloud& cloud = *clouds_.all.Find(provider);
  auto keep = [&](std::string&) { return loop_.SleepFor(duration); };
  auto remove = [&](std::string& id) { return DeleteForeign(cloud, id); };
  co_await Attempt(Bracket(CreateForeign(cloud), keep, remove));
}

// The cloud takes away a machine that works, whoever uses it.
void World::TakeMachine(const ProviderName& provider) {
  if (!scenario_.manners.at(provider).takes_machines) return;
  drivers::FakeCloud& cloud = *clouds_.all.Find(provider);
  std::vector<std::string> candidates;
  for (const auto& [id, server] : cloud.servers()) {
    if (server.status == drivers::FakeServerStatus::kActive && !server.metadata.empty())
      candidates.push_back(id);
  }
  if (candidates.empty()) return;
  const std::string& id = candidates[random_.Below(candidates.size())];
  Trace(fmt::format("{} takes machine {} away", provider, id.substr(0, 8)));
  clouds_.views[provider].taken.insert(id);
  cloud.TakeAway(id);
}

void World::ReplaceConsumer() {
  std::unique_ptr<Consumer>& consumer = consumers_[random_.Below(consumers_.size())];
  consumer->Vanish(AnyUnderWay());
  vanished_.push_back(std::exchange(consumer, NewConsumer()));
}

void World::ReplaceImageBuilder() {
  if (!image_builder_) return;
  image_builder_->Vanish(AnyUnderWay());
  vanished_image_builders_.push_back(std::exchange(image_builder_, NewImageBuilder()));
}

ProviderName World::AnyProvider() {
  auto provider = scenario_.clouds.begin();
  std::advance(provider, random_.Below(scenario_.clouds.size()));
  return provider->first;
}

Duration World::Time(double low, double high) {
  return std::chrono::microseconds(static_cast<std::int64_t>(random_.Between(low, high) * 1'000'000));
}

MemoryZk::UnderWay World::AnyUnderWay() {
  return random_.Below(2) == 0 ? MemoryZk::UnderWay::kDone : MemoryZk::UnderWay::kNotDone;
}

}  // namespace nodepool::sim
