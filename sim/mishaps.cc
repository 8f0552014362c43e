#include "sim/world.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "async/task.h"

namespace nodepool::sim {

Task<> World::BreakThings() {
  double pause = std::chrono::duration<double>(scenario_.trouble.pause).count();
  while (true) {
    co_await loop_.SleepFor(Time(0, 2 * pause));
    Mishap();
  }
}

void World::Mishap() {
  std::size_t index = random_.Below(slots_.size());
  Slot& slot = slots_[index];
  ProviderName provider = AnyProvider();
  drivers::FakeCloud& cloud = *clouds_.all.Find(provider);
  int few = 1 + static_cast<int>(random_.Below(3));
  switch (random_.Below(22)) {
    case 0:
    case 1:
    case 2:
      return CrashOne(slot);
    case 3:
      if (!slot.process || slot.process->is_ending()) return;
      slot.restart_at = stepper_.now() + Time(1, 60);
      return slot.process->Stop();
    case 4:
    case 5:
      tasks_.Spawn("cut off", CutOff(index, slot.life, Time(0.1, 6)));
      return;
    case 6:
      tasks_.Spawn("cut off", CutOff(index, slot.life, Time(8, 25)));
      return;
    case 7:
      if (!slot.process || slot.process->is_ending()) return;
      Trace("the session of " + slot.process->name() + " expires");
      return slot.process->zk().ExpireSession();
    case 8:
      tasks_.Spawn("outage", Outage(provider, Time(2, 60)));
      return;
    case 9:
      for (; few > 0; --few) tasks_.Spawn("occupy", Occupy(provider, Time(5, 60)));
      return;
    case 10:
      return ReplaceConsumer();
    case 21:
      return ReplaceImageBuilder();
    case 11:
      return zk_.SetLatency(Time(0, 0.2));
    case 12:
      return random_.Below(2) == 0 ? cloud.FailNextCreates(few) : cloud.FailNextCreatesWithServer(few);
    case 14:
    case 15:
      if (slot.process) slot.process->Reconfigure(scenario_.Changed(index, random_));
      return;
    case 16:
    case 17:
      return TakeMachine(provider);
    case 18:
      tasks_.Spawn("no quota", Refuse(provider, &ApiWeather::without_quota, Time(1, 60)));
      return;
    case 19:
      tasks_.Spawn("no capacity", Refuse(provider, &ApiWeather::without_capacity, Time(1, 60)));
      return;
    case 20:
      tasks_.Spawn("old lists", ShowOldLists(provider, Time(1, 30)));
      return;
    case 13:
      return random_.Below(2) == 0 ? cloud.HangNextCreates(1) : cloud.FailNextDeletes(few);
  }
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
