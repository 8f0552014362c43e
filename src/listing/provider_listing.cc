#include "listing/provider_listing.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "model/amounts.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

// What one launcher reports about a provider. Launchers of the Python implementation report only that they
// serve its pools.
struct Served {
  std::string launcher;
  const ProviderReport* report = nullptr;
};

std::map<ProviderName, std::vector<Served>> ByProvider(const std::map<std::string, Component>& components) {
  std::map<ProviderName, std::vector<Served>> providers;
  std::set<std::pair<ProviderName, std::string>> seen;
  for (const auto& [path, component] : components) {
    for (const auto& [name, report] : component.providers)
      providers[name].push_back({component.hostname, &report});
    bool is_silent = component.kind == ComponentKind::kPool && !component.locks_slots;
    if (is_silent && seen.emplace(component.provider_name, component.hostname).second)
      providers[component.provider_name].push_back({component.hostname});
  }
  return providers;
}

Resources Used(const store::NodeCache& nodes, const ProviderName& provider) {
  Resources used;
  for (const auto& [pool, use] : nodes.PoolsWithNodes(provider)) Add(used, use.used.total());
  return used;
}

Resources Free(const Resources& limit, const Resources& used) {
  Resources free = limit;
  for (auto& [resource, amount] : free) {
    if (auto it = used.find(resource); it != used.end()) amount = ExactSum(amount, -it->second);
  }
  return free;
}

// `broken`: the open breaker of the whole provider.
std::vector<Cell> StateCells(const Served& served, const ProviderPause* pause, const Breaker* broken) {
  bool is_up = served.report == nullptr || served.report->state == ProviderState::kUp;
  if (pause != nullptr && is_up) {
    return {std::string(kPausedProvider), pause->paused_time ? Cell(ToSeconds(*pause->paused_time)) : Cell()};
  }
  if (served.launcher.empty()) return {std::string(kUnserved), nullptr};
  if (broken != nullptr && is_up) {
    return {std::string(ToString(ProviderState::kFailing)),
            broken->opened ? Cell(ToSeconds(*broken->opened)) : Cell()};
  }
  if (served.report == nullptr) return {std::string(ToString(ProviderState::kUp)), nullptr};
  return {std::string(ToString(served.report->state)), ToSeconds(served.report->since)};
}

// Each open breaker of the provider, a sentence each.
std::vector<std::string> BreakerTexts(const store::RecordCache<Breaker>& breakers,
                                      const ProviderName& provider) {
  std::vector<std::string> texts;
  const auto& all = breakers.all();
  for (auto it = all.lower_bound(BreakerKey{provider}); it != all.end() && it->first.provider == provider;
       ++it)
    texts.push_back(fmt::format("the breaker of {} is open: {}", PartOf(it->first), EvidenceOf(it->second)));
  return texts;
}

Cell WhyCell(const Served& served, const ProviderPause* pause, std::vector<std::string> breakers) {
  bool is_at_fault = served.report != nullptr && !served.report->fault.empty();
  if (pause != nullptr && !is_at_fault) {
    return Cell(fmt::format("{} by {}", pause->is_drained ? "drained" : "paused", WhoAndWhy(*pause)));
  }
  if (served.launcher.empty()) return "no launcher serves it";
  if (served.report == nullptr) return Cell(Join(breakers, "; "));
  if (served.report->state == ProviderState::kDraining) return "it is not configured any more";
  if (is_at_fault) return Cell::OfText(served.report->fault);
  breakers.insert(breakers.begin(), served.report->notices.begin(), served.report->notices.end());
  return Cell(Join(breakers, "; "));
}

}  // namespace

std::vector<Column> ProviderColumns() {
  std::vector<std::string_view> words = ProviderStateWords();
  words.push_back(kUnserved);
  words.push_back(kPausedProvider);
  return {{.key = "name", .title = "Provider", .kind = Kind::kProvider, .fit = {Importance::kAlways}},
          {.key = "driver", .title = "Driver", .fit = {Importance::kLow}},
          {.key = "launcher", .title = "Launcher", .fit = {Importance::kMedium, 12}},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = std::move(words),
           .fit = {Importance::kHigh}},
          {.key = "since", .title = "Since", .kind = Kind::kTime, .fit = {Importance::kLow}},
          {.key = "nodes", .title = "Nodes", .fit = {Importance::kHigh}},
          {.key = "used", .title = "Used", .fit = {Importance::kMedium, 16}},
          {.key = "free", .title = "Free", .fit = {Importance::kMedium, 16}},
          {.key = "why", .title = "Why", .fit = kSentence}};
}

Listing ListProviders(const std::map<ProviderName, std::string>& drivers,
                      const std::map<std::string, Component>& components, const store::NodeCache& nodes,
                      const store::RecordCache<ProviderPause>& pauses,
                      const store::RecordCache<Breaker>& breakers) {
  std::map<ProviderName, std::vector<Served>> providers = ByProvider(components);
  for (const auto& [name, driver] : drivers) {
    if (providers[name].empty()) providers[name].emplace_back();
  }
  for (const auto& [name, pause] : pauses.all()) {
    if (providers[name].empty()) providers[name].emplace_back();
  }
  Listing listing{ProviderColumns(), {}};
  for (const auto& [name, launchers] : providers) {
    Resources used = Used(nodes, name);
    auto driver = drivers.find(name);
    const ProviderPause* pause = pauses.Find(name);
    for (const Served& served : launchers) {
      std::vector<Cell> state = StateCells(served, pause, breakers.Find({name}));
      Resources free = served.report == nullptr ? Resources() : Free(served.report->limit, used);
      listing.rows.push_back({Cell(name.value), Cell(driver == drivers.end() ? "" : driver->second),
                              Cell(served.launcher), std::move(state[0]), std::move(state[1]),
                              Cell(nodes.OfProvider(name).size()), Cell(Amounts(used)), Cell(Amounts(free)),
                              WhyCell(served, pause, BreakerTexts(breakers, name))});
    }
  }
  return listing;
}

}  // namespace nodepool::listing
