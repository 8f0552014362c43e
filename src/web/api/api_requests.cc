#include <boost/json/value_from.hpp>

#include "model/cell.h"
#include "model/decline_reasons.h"
#include "model/json.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;
using launcher::ReportedReason;
using launcher::RequestStatus;
using launcher::WaitReason;
using listing::Kind;

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
