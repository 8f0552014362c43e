#include "runners/runners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "async/task.h"
#include "async/task_group.h"
#include "base/version.h"

namespace nodepool::runners {
namespace {

constexpr Duration kStopTime = std::chrono::seconds(20);

config::RunnerService WithoutSets(config::RunnerService service) {
  service.sets.clear();
  return service;
}

}  // namespace

// A set that this daemon contends for.
struct Runners::Member {
  SetContext set;
  SetTerm* term = nullptr;  // while it is elected
};

Runners::Runners(Loop& loop, Random& random, metrics::Metrics& metrics, zk::Client& client,
                 RunnerNodes& nodes, Connect connect, std::string hostname)
    : logger_("nodepool.runners"),
      store_(loop, client, random),
      leases_(loop, client),
      runners_(loop, client),
      context_{loop, random, metrics, store_, leases_, runners_, nodes, std::move(hostname)},
      connect_(std::move(connect)),
      tasks_(loop, logger_) {}

Runners::~Runners() = default;

Task<> Runners::Start(const std::vector<config::RunnerService>& services) {
  logger_.Info("Nodepool runners {} starting", Version());
  leases_.Start();
  runners_.Start();
  context_.identity = co_await store_.runners.Identity();
  co_await leases_.WaitSynced();
  co_await runners_.WaitSynced();
  is_serving_ = true;
  Reconfigure(services);
  if (services.empty()) logger_.Warning("The configuration names no runners: there is nothing to do");
}

std::shared_ptr<ScaleSets> Runners::ConnectionTo(const config::RunnerService& service) {
  config::RunnerService settings = WithoutSets(service);
  auto known = connections_.find(service.name);
  if (known != connections_.end() && known->second.settings == settings) return known->second.service;
  std::shared_ptr<ScaleSets> made = connect_(settings, runners_);
  connections_.insert_or_assign(service.name, Connection{std::move(settings), made});
  return made;
}

void Runners::Configure(const config::RunnerService& service, const config::RunnerSet& set,
                        bool is_draining) {
  store::RunnerSetKey key{service.name, set.name};
  auto settings = std::make_shared<const SetSettings>(SetSettings{WithoutSets(service), set, is_draining});
  std::shared_ptr<ScaleSets> connection = ConnectionTo(service);
  auto known = members_.find(key);
  if (known == members_.end()) {
    auto member = std::make_unique<Member>(SetContext{context_, key, settings, connection});
    Member& added = *members_.emplace(key, std::move(member)).first->second;
    tasks_.Spawn("contend for a set of runners", Contend(added));
    return;
  }
  Member& member = *known->second;
  member.set.settings = std::move(settings);
  member.set.service = std::move(connection);
  if (member.term != nullptr) member.term->Reconfigured();
}

// Sets that were configured, here or before the start.
void Runners::DrainOthers(const std::vector<config::RunnerService>& services) {
  std::set<store::RunnerSetKey> configured;
  for (const config::RunnerService& service : services) {
    for (const config::RunnerSet& set : service.sets) configured.insert({service.name, set.name});
  }
  std::set<store::RunnerSetKey> others;
  for (const auto& [key, record] : runners_.sets()) others.insert(key);
  for (const auto& [key, member] : members_) others.insert(key);
  for (const store::RunnerSetKey& key : others) {
    if (configured.contains(key)) continue;
    auto member = members_.find(key);
    auto service = std::ranges::find(services, key.service, &config::RunnerService::name);
    if (member != members_.end()) {
      const SetSettings before = *member->second->set.settings;
      Configure(before.service, before.set, true);
    } else if (service != services.end()) {
      Configure(*service, config::RunnerSet{.name = key.set, .labels = {key.set}}, true);
    } else {
      logger_.Warning("{}: its service is not configured any more, so that what is left of it stays",
                      key.str());
    }
  }
}

void Runners::Reconfigure(const std::vector<config::RunnerService>& services) {
  if (!is_serving_) return;
  for (const config::RunnerService& service : services) {
    for (const config::RunnerSet& set : service.sets) Configure(service, set, false);
  }
  DrainOthers(services);
}

Task<> Runners::Contend(Member& member) {
  std::string identifier = fmt::format("{}-{}", context_.hostname, ::getpid());
  zk::Election election = store_.runners.Election(member.set.key, std::move(identifier));
  auto lead = [this, &member] { return Lead(member); };
  co_await election.RunForEver(lead, fmt::format("Serving the runners {}", member.set.name()), logger_);
}

Task<> Runners::Lead(Member& member) {
  logger_.Info("{}: elected to serve it", member.set.name());
  auto term = std::make_unique<SetTerm>(member.set);
  member.term = term.get();
  auto stop = [&] {
    member.term = nullptr;
    return term->Stop();
  };
  co_await WithCleanup(term->Run(), stop);
  // It has drained. Should it be configured again, the next term serves it.
  while (member.set.settings->is_draining) co_await context_.loop.SleepFor(std::chrono::seconds(1));
}

Task<> Runners::Stop() {
  StopSteps steps(context_.loop, logger_, context_.loop.SteadyNow() + kStopTime);
  co_await steps.Do("leaving sets of runners", tasks_.Stop());
  co_await leases_.Stop();
  co_await runners_.Stop();
}

}  // namespace nodepool::runners
