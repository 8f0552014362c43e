#include "model/job.h"

#include "model/record_fields.h"

namespace nodepool {
namespace {

constexpr std::string_view kHoldComment = "Automatically held after failing ";

// A text that is not empty and not too long.
struct JobNameCodec : Codec<std::string> {
  static constexpr std::string_view kExpected = "a text of 1 to 255 bytes";
  static Reading Read(std::string_view written, std::string& name) {
    std::string text;
    Reading reading = codec::ReadStrictText(written, text);
    if (reading == Reading::kWrong || text.empty() || text.size() > kMaxJobName) return Reading::kWrong;
    name = std::move(text);
    return reading;
  }
};

}  // namespace

template <class Fields, RecordOf<JobRule> T>
void EachField(Fields& fields, T& rule) {
  fields("name", rule.name, JobNameCodec());
  fields("hold_on_failure", rule.hold_on_failure);
}

template <class Fields, RecordOf<HoldNote> T>
void EachField(Fields& fields, T& note) {
  fields("hold_job", note.hold_job, JobNameCodec());
  fields("comment", note.comment);
  fields("created_time", note.created_time);
}

namespace {

// The name has no default.
template <class Record>
Expected<Record> ReadNamed(std::string_view json, std::string_view key, std::string Record::*name) {
  Expected<Record> record = ReadRecord(json, Record());
  if (record && ((*record).*name).empty())
    return Unexpected(Verdict::kInvalid, fmt::format("\"{}\" is not {}", key, JobNameCodec::kExpected));
  return record;
}

}  // namespace

Expected<JobRule> ParseJobRule(std::string_view json) { return ReadNamed(json, "name", &JobRule::name); }
std::string ToJson(const JobRule& rule) { return WriteRecord(rule); }

Expected<HoldNote> ParseHoldNote(std::string_view json) {
  return ReadNamed(json, "hold_job", &HoldNote::hold_job);
}
std::string ToJson(const HoldNote& note) { return WriteRecord(note); }

std::string HoldComment(const std::string& job) { return std::string(kHoldComment) + job; }

bool CanBeHeld(const Node& node) { return node.state == NodeState::kInUse || node.state == NodeState::kUsed; }

void Hold(Node& node, const HoldNote& note, WallTime now) {
  node.SetState(NodeState::kHold, now);
  node.hold_job = note.hold_job;
  node.comment = note.comment;
}

std::optional<std::string> HeldForJob(const Node& node) {
  if (node.state != NodeState::kHold) return std::nullopt;
  if (node.hold_job && !node.hold_job->empty()) return node.hold_job;
  if (!node.comment || !node.comment->starts_with(kHoldComment)) return std::nullopt;
  return node.comment->substr(kHoldComment.size());
}

}  // namespace nodepool
