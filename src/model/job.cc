#include "model/job.h"

#include "model/json.h"
#include "model/record_reader.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::string_view kHoldComment = "Automatically held after failing ";

// A text that is not empty and not too long.
std::string JobName(RecordReader& reader, std::string_view key) {
  const json::value* value = reader.Find(key);
  bool is_good = value != nullptr && value->is_string() && !value->get_string().empty() &&
                 value->get_string().size() <= kMaxJobName;
  if (!is_good) {
    reader.Fail(key, "a text of 1 to 255 bytes");
    return "";
  }
  return *reader.Text(key);
}

}  // namespace

Expected<JobRule> ParseJobRule(std::string_view json) {
  RecordReader reader(json);
  JobRule rule;
  rule.name = JobName(reader, "name");
  rule.hold_on_failure = reader.Integer("hold_on_failure");
  if (reader.error()) return std::unexpected(*reader.error());
  rule.unknown = reader.TakeUnknown();
  return rule;
}

std::string ToJson(const JobRule& rule) {
  json::object record;
  record["name"] = rule.name;
  record["hold_on_failure"] = ToValue(rule.hold_on_failure);
  AddUnknown(rule.unknown, record);
  return WriteJson(record);
}

Expected<HoldWish> ParseHoldWish(std::string_view json) {
  RecordReader reader(json);
  HoldWish wish;
  wish.hold_job = JobName(reader, "hold_job");
  wish.comment = reader.Text("comment").value_or("");
  wish.created_time = reader.Time("created_time");
  if (reader.error()) return std::unexpected(*reader.error());
  wish.unknown = reader.TakeUnknown();
  return wish;
}

std::string ToJson(const HoldWish& wish) {
  json::object record;
  record["hold_job"] = wish.hold_job;
  record["comment"] = wish.comment;
  record["created_time"] = ToValue(wish.created_time);
  AddUnknown(wish.unknown, record);
  return WriteJson(record);
}

std::string HoldComment(const std::string& job) { return std::string(kHoldComment) + job; }

bool CanBeHeld(const Node& node) { return node.state == NodeState::kInUse || node.state == NodeState::kUsed; }

void Hold(Node& node, const HoldWish& wish, WallTime now) {
  node.SetState(NodeState::kHold, now);
  node.hold_job = wish.hold_job;
  node.comment = wish.comment;
}

std::optional<std::string> HeldForJob(const Node& node) {
  if (node.state != NodeState::kHold) return std::nullopt;
  if (node.hold_job && !node.hold_job->empty()) return node.hold_job;
  if (!node.comment || !node.comment->starts_with(kHoldComment)) return std::nullopt;
  return node.comment->substr(kHoldComment.size());
}

}  // namespace nodepool
