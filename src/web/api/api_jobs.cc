#include "model/cell.h"
#include "web/api/api_fields.h"

namespace nodepool::web {

namespace json = boost::json;

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
