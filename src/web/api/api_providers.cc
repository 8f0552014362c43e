#include <boost/json/value_from.hpp>
#include <set>

#include "model/json.h"
#include "model/node_request.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using launcher::LabelStatus;
using launcher::PoolStatus;
using launcher::ProviderStatus;
using launcher::ReportedReason;
using launcher::RequestStatus;
using launcher::WaitReason;
using listing::Kind;

namespace {

json::value Counts(const std::map<std::string_view, int>& nodes) {
  json::object by_state;
  for (const auto& [state, count] : nodes) by_state[state] = count;
  return by_state;
}

const FieldTable<LabelStatus>& LabelFields() {
  static const FieldTable<LabelStatus> fields({
      {{"name", Text(), "of the label"}, [](const LabelStatus& l) { return json::value(l.name.value); }},
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
      {{"name", Text(), "of the pool"}, [](const PoolStatus& p) { return json::value(p.name.value); }},
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
      {{"labels", ListOf(LabelFields().type()), "that it offers"},
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

json::value TimeOrNull(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

json::value OpenBreakers(const ProviderStatus& provider) {
  json::array breakers;
  for (const BreakerEntry& breaker : provider.breakers) breakers.push_back(BreakerFields().ToJson(breaker));
  return breakers;
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
      {{"reason", Text().OrNull(), "as the operator wrote it"},
       [](const PauseEntry& p) { return TextCell(p.second.reason); }},
      {{"is_drained", Flag(), "its unused nodes are deleted, too"},
       [](const PauseEntry& p) { return json::value(p.second.is_drained); }},
      {{"at", Number().OrNull(), "since when, in seconds since the epoch"},
       [](const PauseEntry& p) {
         return p.second.paused_time ? json::value(ToSeconds(*p.second.paused_time)) : json::value();
       }},
  });
  return fields;
}

const FieldTable<BreakerEntry>& BreakerFields() {
  static const FieldTable<BreakerEntry> fields({
      {{"provider", Text(), "whose launches fail", false, Kind::kProvider},
       [](const BreakerEntry& b) { return json::value(b.first.provider.value); }},
      {{"pool", Text().OrNull(), "null: the breaker is of the whole provider"},
       [](const BreakerEntry& b) { return TextOrNull(b.first.pool.value); }},
      {{"label", Text().OrNull(), "null: of the whole pool, or provider", false, Kind::kLabel},
       [](const BreakerEntry& b) { return TextOrNull(b.first.label.value); }},
      {{"state", OneOf({"open", "half-open"}), "half-open: one launch is tried"},
       [](const BreakerEntry& b) { return json::value(b.second.prober.empty() ? "open" : "half-open"); }},
      {{"kind", Text().OrNull(),
        "why most launches failed: authentication, quota, capacity, boot, key-scan, image, other"},
       [](const BreakerEntry& b) { return TextCell(b.second.kind); }},
      {{"failures", Whole(), "launches that failed, among `attempts`, when it opened"},
       [](const BreakerEntry& b) { return json::value(b.second.failures); }},
      {{"attempts", Whole(), "launches in which the failures were counted"},
       [](const BreakerEntry& b) { return json::value(b.second.attempts); }},
      {{"said", Text().OrNull(), "the last error"},
       [](const BreakerEntry& b) { return TextCell(b.second.said); }},
      {{"evidence", Text(), "all of that in a sentence"},
       [](const BreakerEntry& b) { return json::value(EvidenceOf(b.second)); }},
      {{"opened", Number().OrNull(), "in seconds since the epoch"},
       [](const BreakerEntry& b) { return TimeOrNull(b.second.opened); }},
      {{"next_probe", Number().OrNull(), "when a launch is tried, in seconds since the epoch"},
       [](const BreakerEntry& b) { return TimeOrNull(b.second.next_probe); }},
      {{"failed_probes", Whole(), "launches that were tried and failed, too"},
       [](const BreakerEntry& b) { return json::value(b.second.failed_probes); }},
      {{"good_probes", Whole(), "launches that were tried and succeeded, in a row"},
       [](const BreakerEntry& b) { return json::value(b.second.good_probes); }},
      {{"relapses", Whole(),
        "how often it has opened soon after it had closed; then it takes more successes to close"},
       [](const BreakerEntry& b) { return json::value(b.second.relapses); }},
      {{"tried_anyway", Whole(), "requests that no other pool could serve and that were tried here"},
       [](const BreakerEntry& b) { return json::value(b.second.tried_anyway); }},
  });
  return fields;
}

namespace {

const FieldTable<driver::ApiRate>& ApiRateFields() {
  static const FieldTable<driver::ApiRate> fields({
      {{"budget", Text(), "the service, or the part of its calls that it counts together"},
       [](const driver::ApiRate& r) { return json::value(r.budget); }},
      {{"share", Number(),
        "of the usual rate, up to 1, at its last call; lower after refusals, slow answers or none"},
       [](const driver::ApiRate& r) { return json::value(r.share); }},
      {{"waiting", Whole(), "calls that waited for their turn then"},
       [](const driver::ApiRate& r) { return json::value(r.waiting); }},
  });
  return fields;
}

json::value ApiRates(const ProviderStatus& provider) {
  json::array rates;
  for (const driver::ApiRate& rate : provider.api_rates) rates.push_back(ApiRateFields().ToJson(rate));
  return rates;
}

}  // namespace

const FieldTable<ProviderStatus>& ProviderFields() {
  static const FieldTable<ProviderStatus> fields({
      {{"name", Text(), "of the provider", false, Kind::kProvider},
       [](const ProviderStatus& p) { return json::value(p.name.value); }},
      {{"launchers", ListOf(Text()), "hostnames of those that serve it"},
       [](const ProviderStatus& p) { return json::value_from(p.launchers); }},
      {{"is_own", Flag(),
        "this launcher serves it; of others it is known what they announce, and what the records say"},
       [](const ProviderStatus& p) { return json::value(p.is_own); }},
      {{"driver", Text().OrNull(), "null: unknown"},
       [](const ProviderStatus& p) { return TextOrNull(p.driver); }},
      {{"state", OneOf(ProviderStateWords()), "whether it can be used", false, Kind::kState},
       [](const ProviderStatus& p) { return json::value(ToString(p.state)); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const ProviderStatus& p) { return Cell::Since(p.since); }},
      {{"is_up", Flag(), "it has started and can be used"},
       [](const ProviderStatus& p) { return json::value(p.health.is_up); }},
      {{"fault", Text().OrNull(), "why it cannot be used"},
       [](const ProviderStatus& p) { return TextOrNull(p.health.fault); }},
      {{"notices", ListOf(Text()), "what needs attention although it can be used: hosts that do not answer"},
       [](const ProviderStatus& p) { return json::value_from(p.notices); }},
      {{"api_rates", ListOf(ApiRateFields().type()),
        "how services of its cloud are called that have not borne all calls; empty for those of other "
        "launchers"},
       &ApiRates},
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
      {{"breakers", ListOf(BreakerFields().type()), "those of it, its pools and labels that are open"},
       &OpenBreakers},
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
      {{"pools", ListOf(PoolFields().type()), "of all launchers"}, &Pools},
  });
  return fields;
}

namespace {

bool IsPool(const ComponentEntry& entry) { return entry.second.kind == ComponentKind::kPool; }

}  // namespace

// Fields that only pools have are null or empty for other components.
const FieldTable<ComponentEntry>& ComponentFields() {
  static const FieldTable<ComponentEntry> fields({
      {{"path", Text(), "of its entry, below the directory of components"},
       [](const ComponentEntry& c) { return json::value(c.first); }},
      {{"kind", OneOf({"launcher", "builder", "pool"}), "of program, or a pool of a launcher"},
       [](const ComponentEntry& c) { return json::value(ToString(c.second.kind)); }},
      {{"hostname", Text(), "of the host that it runs on"},
       [](const ComponentEntry& c) { return json::value(c.second.hostname); }},
      {{"state", OneOf({"initializing", "running", "paused", "stopped"}), "as it announces it", false,
        Kind::kState},
       [](const ComponentEntry& c) { return json::value(ToString(c.second.state)); }},
      {{"version", Text().OrNull(), "of the program"},
       [](const ComponentEntry& c) { return TextCell(c.second.version); }},
      {{"launcher", Text().OrNull(), "of a pool: how it signs what it declines"},
       [](const ComponentEntry& c) { return TextOrNull(c.second.id.value); }},
      {{"provider", Text().OrNull(), "of a pool", false, Kind::kProvider},
       [](const ComponentEntry& c) { return TextOrNull(c.second.provider_name.value); }},
      {{"pool", Text().OrNull(), "its name"},
       [](const ComponentEntry& c) {
         return c.second.name ? json::value(c.second.name->value) : json::value();
       }},
      {{"labels", ListOf(Text()), "that a pool offers", false, Kind::kLabel},
       [](const ComponentEntry& c) { return JsonNames(c.second.supported_labels); }},
      {{"priority", Whole().OrNull(), "of a pool; smaller is preferred"},
       [](const ComponentEntry& c) { return IsPool(c) ? json::value(c.second.priority) : json::value(); }},
      {{"is_paused", Flag().OrNull(), "of a pool: its oldest accepted request waits for capacity"},
       [](const ComponentEntry& c) { return IsPool(c) ? json::value(c.second.is_paused) : json::value(); }},
  });
  return fields;
}

using listing::Problem;

const FieldTable<Problem>& ProblemFields() {
  static const FieldTable<Problem> fields({
      {{"id", Text(), "the same for as long as the problem lasts"},
       [](const Problem& p) { return json::value(p.id()); }},
      {{"kind", OneOf(listing::ProblemKinds()), "what the problem is, for programs"},
       [](const Problem& p) { return json::value(p.kind); }},
      {{"severity", OneOf(listing::SeverityWords()),
        "bad: something does not work until an operator acts; wait: it may pass by itself"},
       [](const Problem& p) { return json::value(ToString(p.severity)); }},
      {{"since", Number().OrNull(),
        "in seconds since the epoch: where it is not known, since when the first "
        "request that it delays waits; null: nor is there one"},
       [](const Problem& p) { return p.since ? json::value(ToSeconds(*p.since)) : json::value(); }},
      {{"topic", Text().OrNull(), "the resource that it is about, such as providers"},
       [](const Problem& p) {
         return p.subject.topic.empty() ? json::value() : json::value(p.subject.topic);
       }},
      {{"key", Text().OrNull(), "the name or id of its entry there; null: no single one"},
       [](const Problem& p) { return TextOrNull(p.subject.key); }},
      {{"text", Text(), "a sentence without a full stop"},
       [](const Problem& p) { return json::value(p.text); }},
      {{"remedy", Text(), "what to do, likewise"}, [](const Problem& p) { return json::value(p.remedy); }},
      {{"delayed_requests", Whole(), "requests that wait because of it, maybe of others as well"},
       [](const Problem& p) { return json::value(p.delayed_requests); }},
      {{"command", Text(), "shows more of it"}, [](const Problem& p) { return json::value(p.command); }},
      {{"rank", Whole(), "of those with the same severity and delay, the smaller one is more urgent"},
       [](const Problem& p) { return json::value(RankOf(p)); }},
  });
  return fields;
}

namespace {

JsonType PoolType() { return ObjectOf({{"provider", Text(), "of the pool"}, {"pool", Text(), "its name"}}); }

}  // namespace

const FieldTable<WaitReason>& WaitFields() {
  static const FieldTable<WaitReason> fields({
      {{"provider", Text(), "of the pool"},
       [](const WaitReason& w) { return json::value(w.pool.provider.value); }},
      {{"pool", Text(), "its name"}, [](const WaitReason& w) { return json::value(w.pool.pool.value); }},
      {{"reason", Text(), "for programs"}, [](const WaitReason& w) { return json::value(w.code); }},
      {{"text", Text(), "the same for operators, as it is said of the pool"},
       [](const WaitReason& w) { return json::value(w.text); }},
      {{"labels", ListOf(Text()), "of an accepted request: those that cannot be had now", true},
       [](const WaitReason& w) {
         return w.labels.empty() ? json::value() : json::value(JsonNames(w.labels));
       }},
      {{"missing",
        ObjectOf({{"pool", MapOf(Number()), "its name"}, {"provider", MapOf(Number()), "of the pool"}}),
        "of an accepted request: amounts by resource", true},
       [](const WaitReason& w) {
         json::object missing{{"pool", Amounts(w.pool_shortage)}, {"provider", Amounts(w.provider_shortage)}};
         return w.labels.empty() ? json::value() : json::value(std::move(missing));
       }},
  });
  return fields;
}

namespace {

json::value Waits(const RequestStatus& status) {
  json::array waits;
  for (const WaitReason& reason : status.waits) waits.push_back(WaitFields().ToJson(reason));
  return waits;
}

json::value AcceptedBy(const RequestStatus& status) {
  if (!status.accepted_by) return nullptr;
  return json::object{{"provider", status.accepted_by->provider.value},
                      {"pool", status.accepted_by->pool.value}};
}

}  // namespace

JsonType ReasonType() {
  return ObjectOf({{"code", Text(),
                    "for programs, as `reason` of `waits`; `launcher-silent`: a launcher does not answer"},
                   {"provider", Text().OrNull(), "whose reason it is; null: of no provider"},
                   {"pool", Text().OrNull(), "its name"},
                   {"text", Text(), "one sentence for operators, equal for equal causes"},
                   {"launcher", Text(), "hostname of the launcher that says so"}});
}

json::value ReasonValue(const std::optional<sched::RequestReason>& reason) {
  if (!reason) return nullptr;
  auto name = [](const std::string& of) { return of.empty() ? json::value() : json::value(of); };
  return json::object{{"code", reason->code},
                      {"provider", name(reason->pool.provider.value)},
                      {"pool", name(reason->pool.pool.value)},
                      {"text", reason->text},
                      {"launcher", reason->launcher}};
}

const FieldTable<ReportedReason>& ReasonFields() {
  static const FieldTable<ReportedReason> fields({
      {{.key = "id", .type = Text(), .text = "of the request", .is_order = true},
       [](const ReportedReason& r) { return json::value(r.id.value); }},
      {{"code", Text(), "for programs"}, [](const ReportedReason& r) { return json::value(r.reason.code); }},
      {{"provider", Text().OrNull(), "of the pool", false, Kind::kProvider},
       [](const ReportedReason& r) { return TextOrNull(r.reason.pool.provider.value); }},
      {{"pool", Text().OrNull(), "its name"},
       [](const ReportedReason& r) { return TextOrNull(r.reason.pool.pool.value); }},
      {{"text", Text(), "one sentence for operators"},
       [](const ReportedReason& r) { return json::value(r.reason.text); }},
  });
  return fields;
}

const FieldTable<RequestStatus>& RequestFields() {
  static const FieldTable<RequestStatus> fields({
      {{.key = "id", .type = Text(), .text = "priority and number, 200-0000000001", .is_order = true},
       [](const RequestStatus& r) { return json::value(r.id.value); }},
      {{"state", OneOf(RequestStateWords()).OrNull(), "as its record has it", false, Kind::kState},
       [](const RequestStatus& r) { return StateCell(r.record->state); }},
      {{"age", Whole(), "seconds since it was made"},
       [](const RequestStatus& r) {
         return Cell::Since(r.record->created_time.value_or(r.record->state_time));
       }},
      {{"labels", ListOf(Text()), "one for each node", false, Kind::kLabel},
       [](const RequestStatus& r) { return JsonNames(r.record->node_types); }},
      {{"requestor", Text().OrNull(), "the client"},
       [](const RequestStatus& r) { return TextCell(r.record->requestor); }},
      {{"tenant", Text().OrNull(), "whose quota counts"},
       [](const RequestStatus& r) { return TextCell(r.record->tenant_name); }},
      {{"provider", Text().OrNull(), "the one that the client prefers", false, Kind::kProvider},
       [](const RequestStatus& r) { return TextOrNull(r.record->provider.value); }},
      {{"priority", Number(), "relative to others of the same number before the dash; smaller is first"},
       [](const RequestStatus& r) { return NumberValue(r.record->relative_priority); }},
      {{"event_id", Text().OrNull(), "of the client, for its own logs"},
       [](const RequestStatus& r) { return TextCell(r.record->event_id); }},
      {{"nodes", ListOf(Text()), "ids, once it is fulfilled"},
       [](const RequestStatus& r) { return JsonNames(r.record->nodes); }},
      {{"declined_by", ListOf(Text()), "launchers"},
       [](const RequestStatus& r) { return JsonNames(r.record->declined_by); }},
      {{"accepted_by", PoolType().OrNull(), "the pool of this launcher that works on it"}, &AcceptedBy},
      {{"waits", ListOf(WaitFields().type()), "why it waits, as each pool of this launcher says"}, &Waits},
      {{"reason", ReasonType().OrNull(),
        "what decides that it waits, of what the pools of all launchers say; null: it does not wait"},
       [](const RequestStatus& r) { return ReasonValue(r.reason); }},
      {{"decline_reasons", ListOf(Text()), "why pools of any launcher declined it, for operators"},
       [](const RequestStatus& r) { return json::value_from(DeclineReasons(*r.record)); }},
      {{"is_deleted", Flag(), "it failed and its client has deleted it; listed for an hour after that"},
       [](const RequestStatus& r) { return json::value(r.is_deleted); }},
  });
  return fields;
}

namespace {

json::value Ids(const std::map<std::string, std::set<NodeId>>& by_job, const JobEntry& job) {
  json::array ids;
  if (auto found = by_job.find(job.rule.record.name); found != by_job.end()) {
    for (const NodeId& id : found->second) ids.emplace_back(id.value);
  }
  return ids;
}

}  // namespace

const FieldTable<JobEntry>& JobFields() {
  static const FieldTable<JobEntry> fields({
      {{"id", Text(), "ten digits"}, [](const JobEntry& j) { return Cell::OfText(j.rule.id.value); }},
      {{"name", Text(), "of the job, or a regular expression that begins with ^"},
       [](const JobEntry& j) { return Cell::OfText(j.rule.record.name); }},
      {{"hold_on_failure", Whole().OrNull(), "how many nodes are held at most; null: none"},
       [](const JobEntry& j) {
         return j.rule.record.hold_on_failure ? json::value(*j.rule.record.hold_on_failure) : json::value();
       }},
      {{"held", ListOf(Text()), "ids of the nodes that are held for it"},
       [](const JobEntry& j) { return Ids(j.nodes.HeldByJob(), j); }},
      {{"hold_notes", ListOf(Text()), "ids of the nodes that will be held when they are given back"},
       [](const JobEntry& j) { return Ids(j.jobs.HoldNotesByJob(), j); }},
  });
  return fields;
}

}  // namespace nodepool::web
