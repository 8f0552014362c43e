#include <boost/json/value_from.hpp>
#include <set>

#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using launcher::LabelStatus;
using launcher::PoolStatus;
using launcher::ProviderStatus;
using listing::Kind;

namespace {

json::value Counts(const std::map<std::string_view, int>& nodes) {
  json::object by_state;
  for (const auto& [state, count] : nodes) by_state[state] = count;
  return by_state;
}

const FieldTable<LabelStatus>& LabelFields() {
  static const FieldTable<LabelStatus> fields({
      {{"name", Text(), ""}, [](const LabelStatus& l) { return json::value(l.name.value); }},
      {{"is_available", Flag(), "a node of it could be launched, given capacity"},
       [](const LabelStatus& l) { return json::value(l.is_available); }},
      {{"free_nodes", Whole(), "its ready nodes that no request has"},
       [](const LabelStatus& l) { return json::value(l.free_nodes); }},
      {{"fault", Text().OrNull(), "why no node of it can be launched"},
       [](const LabelStatus& l) { return TextCell(l.fault); }},
  });
  return fields;
}

const FieldTable<PoolStatus>& PoolFields() {
  static const FieldTable<PoolStatus> fields({
      {{"name", Text(), ""}, [](const PoolStatus& p) { return json::value(p.name.value); }},
      {{"launcher", Text(), "as it is announced"},
       [](const PoolStatus& p) { return json::value(p.launcher.value); }},
      {{"is_registered", Flag(), "its component record is in ZooKeeper"},
       [](const PoolStatus& p) { return json::value(p.is_registered); }},
      {{"is_draining", Flag(), "it is not configured any more"},
       [](const PoolStatus& p) { return json::value(p.is_draining); }},
      {{"is_waiting", Flag(), "a request that it has accepted waits for capacity"},
       [](const PoolStatus& p) { return json::value(p.is_waiting); }},
      {{"priority", Whole(), "smaller is preferred"},
       [](const PoolStatus& p) { return json::value(p.priority); }},
      {{"requests", Whole().OrNull(), "accepted and not finished; null: of another launcher"},
       [](const PoolStatus& p) { return p.requests ? json::value(*p.requests) : json::value(); }},
      {{"limit", MapOf(Number()), "configured, by resource; unlimited, or of another launcher, if absent"},
       [](const PoolStatus& p) { return json::value(Amounts(p.limit)); }},
      {{"used", MapOf(Number()), "by its nodes and by launches that have been decided"},
       [](const PoolStatus& p) { return json::value(Amounts(p.used)); }},
      {{"reserved", MapOf(Number()), "the part of `used` for which there is no node yet"},
       [](const PoolStatus& p) { return json::value(Amounts(p.reserved)); }},
      {{"nodes", MapOf(Whole()), "number of nodes by state"},
       [](const PoolStatus& p) { return Counts(p.nodes); }},
      {{"labels", ListOf(LabelFields().type()), ""},
       [](const PoolStatus& p) -> json::value {
         json::array labels;
         for (const LabelStatus& label : p.labels) labels.push_back(LabelFields().ToJson(label));
         return labels;
       }},
  });
  return fields;
}

json::value LabelNames(const ProviderStatus& provider) {
  std::set<std::string> names;
  for (const PoolStatus& pool : provider.pools) {
    for (const LabelStatus& label : pool.labels) names.insert(label.name.value);
  }
  return json::array(names.begin(), names.end());
}

json::value Pools(const ProviderStatus& provider) {
  json::array pools;
  for (const PoolStatus& pool : provider.pools) pools.push_back(PoolFields().ToJson(pool));
  return pools;
}

}  // namespace

const FieldTable<PauseEntry>& PauseFields() {
  static const FieldTable<PauseEntry> fields({
      {{"provider", Text(), "also one that is not configured any more", false, Kind::kProvider},
       [](const PauseEntry& p) { return json::value(p.first.value); }},
      {{"paused_by", Text().OrNull(), "the token's name, or the user and host of the command"},
       [](const PauseEntry& p) { return TextOrNull(p.second.paused_by); }},
      {{"reason", Text().OrNull(), ""}, [](const PauseEntry& p) { return TextCell(p.second.reason); }},
      {{"is_drained", Flag(), "its unused nodes are deleted, too"},
       [](const PauseEntry& p) { return json::value(p.second.is_drained); }},
      {{"at", Number().OrNull(), "since when, in seconds since the epoch"},
       [](const PauseEntry& p) {
         return p.second.paused_time ? json::value(ToSeconds(*p.second.paused_time)) : json::value();
       }},
  });
  return fields;
}

const FieldTable<ProviderStatus>& ProviderFields() {
  static const FieldTable<ProviderStatus> fields({
      {{"name", Text(), "", false, Kind::kProvider},
       [](const ProviderStatus& p) { return json::value(p.name.value); }},
      {{"launchers", ListOf(Text()), "hostnames of those that serve it"},
       [](const ProviderStatus& p) { return json::value_from(p.launchers); }},
      {{"is_own", Flag(),
        "this launcher serves it; of others it is known what they announce, and what the records say"},
       [](const ProviderStatus& p) { return json::value(p.is_own); }},
      {{"driver", Text().OrNull(), "null: unknown"},
       [](const ProviderStatus& p) { return TextOrNull(p.driver); }},
      {{"state", OneOf(ProviderStateWords()), "", false, Kind::kState},
       [](const ProviderStatus& p) { return json::value(ToString(p.state)); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const ProviderStatus& p) { return Cell::Since(p.since); }},
      {{"is_up", Flag(), "it has started and can be used"},
       [](const ProviderStatus& p) { return json::value(p.health.is_up); }},
      {{"fault", Text().OrNull(), "why it cannot be used"},
       [](const ProviderStatus& p) { return TextOrNull(p.health.fault); }},
      {{"notices", ListOf(Text()), "what needs attention although it can be used: hosts that do not answer"},
       [](const ProviderStatus& p) { return json::value_from(p.notices); }},
      {{"next_start", Whole().OrNull(), "seconds until it is tried again"},
       [](const ProviderStatus& p) {
         if (!p.next_start) return json::value();
         return json::value(std::chrono::ceil<std::chrono::seconds>(*p.next_start).count());
       }},
      {{"is_draining", Flag(), "it is not configured any more"},
       [](const ProviderStatus& p) { return json::value(p.is_draining); }},
      {{"pause", PauseFields().type().OrNull(), "that operators have paused it, if so"},
       [](const ProviderStatus& p) -> json::value {
         if (!p.pause) return nullptr;
         return PauseFields().ToJson({p.name, *p.pause});
       }},
      {{"max_concurrency", Whole().OrNull(), "launches at a time; null: any number, or unknown"},
       [](const ProviderStatus& p) {
         return p.max_concurrency > 0 ? json::value(p.max_concurrency) : json::value();
       }},
      {{"launches", Whole().OrNull(), "in progress; null: unknown"},
       [](const ProviderStatus& p) { return p.is_own ? json::value(p.launches) : json::value(); }},
      {{"limit", MapOf(Number()),
        "what the cloud leaves for Nodepool, by resource; unlimited or unknown if absent"},
       [](const ProviderStatus& p) { return json::value(Amounts(p.limit)); }},
      {{"used", MapOf(Number()), "by nodes of all its pools and by launches that have been decided"},
       [](const ProviderStatus& p) { return json::value(Amounts(p.used)); }},
      {{"reserved", MapOf(Number()), "the part of `used` for which there is no node yet"},
       [](const ProviderStatus& p) { return json::value(Amounts(p.reserved)); }},
      {{"nodes", MapOf(Whole()), "number of nodes by state"},
       [](const ProviderStatus& p) { return Counts(p.nodes); }},
      {{"labels", ListOf(Text()), "that its pools offer", false, Kind::kLabel}, &LabelNames},
      {{"pools", ListOf(PoolFields().type()), ""}, &Pools},
  });
  return fields;
}

}  // namespace nodepool::web
