#include "model/runner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_fields.h"
#include "base/text.h"
#include "model/json.h"
#include "model/record_fields.h"

namespace nodepool {
namespace {

namespace json = boost::json;

constexpr std::array<std::pair<RunState, std::string_view>, 7> kRunStates = {
    {{RunState::kWanted, "wanted"},
     {RunState::kNode, "node"},
     {RunState::kRegistered, "registered"},
     {RunState::kStarted, "started"},
     {RunState::kOnline, "online"},
     {RunState::kJob, "job"},
     {RunState::kEnding, "ending"}}};
constexpr std::size_t kRunIdDigits = 8;
constexpr std::string_view kRunnerKey = "runner";  // in a node's user data
constexpr std::size_t kShownName = 120;

std::optional<WallTime> TimeIn(const json::object& object, std::string_view key) {
  double seconds = NumberIn(object, key);
  return seconds > 0 ? std::optional(FromSeconds(seconds)) : std::nullopt;
}

json::value Seconds(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

json::object ObjectOf(const RunnerJob& job) {
  return {{"request", job.request},
          {"repository", job.repository},
          {"workflow", job.workflow},
          {"job", job.job},
          {"run_url", job.run_url},
          {"queued_time", Seconds(job.queued_time)},
          {"assigned_time", Seconds(job.assigned_time)}};
}

RunnerJob JobIn(const json::object& object) {
  RunnerJob job{.repository = TextIn(object, "repository"),
                .workflow = TextIn(object, "workflow"),
                .job = TextIn(object, "job"),
                .run_url = TextIn(object, "run_url"),
                .queued_time = TimeIn(object, "queued_time"),
                .assigned_time = TimeIn(object, "assigned_time")};
  const json::value* request = object.if_contains("request");
  if (request != nullptr && request->is_int64()) job.request = request->get_int64();
  return job;
}

json::object ObjectOf(const LostJob& lost) {
  json::object object = ObjectOf(lost.job);
  object["node"] = lost.node.value;
  object["reason"] = lost.reason;
  object["time"] = Seconds(lost.time);
  return object;
}

void ReadFrom(const json::object& object, RunnerJob& job) { job = JobIn(object); }
void ReadFrom(const json::object& object, LostJob& lost) {
  lost = {JobIn(object), NodeId(TextIn(object, "node")), TextIn(object, "reason"), TimeIn(object, "time")};
}

// A list of objects; what else is in it is left out.
template <class T>
struct ObjectsCodec {
  static constexpr std::string_view kExpected = "a list";
  static Reading Read(std::string_view written, std::vector<T>& entries) {
    json::value value = JsonValueOf(written);
    entries.clear();
    if (value.is_null()) return Reading::kOurs;
    if (!value.is_array()) return Reading::kWrong;
    for (const json::value& each : value.get_array()) {
      if (each.is_object()) ReadFrom(each.get_object(), entries.emplace_back());
    }
    return Reading::kOurs;
  }
  static void Write(std::string& out, const std::vector<T>& entries) {
    json::array list;
    for (const T& entry : entries) list.push_back(ObjectOf(entry));
    AppendJson(out, json::value(std::move(list)), JsonStyle::kPython);
  }
  static bool IsUnset(const std::vector<T>& entries) { return entries.empty(); }
};

}  // namespace

std::string_view ToString(RunState state) {
  return std::ranges::find(kRunStates, state, [](const auto& each) { return each.first; })->second;
}

std::optional<RunState> ParseRunState(std::string_view text) {
  auto word = std::ranges::find(kRunStates, text, [](const auto& each) { return each.second; });
  if (word == kRunStates.end()) return std::nullopt;
  return word->first;
}

std::vector<std::string_view> RunStateWords() {
  std::vector<std::string_view> words;
  for (const auto& [state, word] : kRunStates) words.push_back(word);
  return words;
}

template <class Fields, RecordOf<RunnerRun> T>
void EachField(Fields& fields, T& run) {
  fields("state", run.state, StateCodec<&ParseRunState>());
  fields("service", run.service);
  fields("set", run.set);
  fields("runner_name", run.runner_name);
  fields("runner_id", run.runner_id);
  fields("lease", run.lease);
  fields("node", run.node);
  fields("handle", run.handle);
  fields("request", run.job.request);
  fields("repository", run.job.repository);
  fields("workflow", run.job.workflow);
  fields("job", run.job.job);
  fields("run_url", run.job.run_url);
  fields("queued_time", run.job.queued_time);
  fields("assigned_time", run.job.assigned_time);
  fields("created_time", run.created_time);
  fields("node_time", run.node_time);
  fields("online_time", run.online_time);
  fields("job_time", run.job_time);
  fields("reason", run.reason);
}

template <class Fields, RecordOf<RunnerSetRecord> T>
void EachField(Fields& fields, T& set) {
  fields("scale_set", set.scale_set);
  fields("made", set.is_made);
  fields("url", set.url);
  fields("session", set.session);
  fields("owner", set.owner);
  fields("hostname", set.hostname);
  fields("state", set.state);
  fields("fault", set.fault);
  fields("remedy", set.remedy);
  fields("since", set.since);
  fields("waiting", set.waiting);
  fields("why", set.why);
  fields("jobs", set.jobs, ObjectsCodec<RunnerJob>());
  fields("lost", set.lost, ObjectsCodec<LostJob>());
  fields("phantoms", set.phantoms);
  fields("max_runners", set.max_runners);
  fields("deferred", set.deferred, ObjectsCodec<RunnerJob>());
  fields("warnings", set.warnings);
  fields("version", set.version);
  fields("newest_version", set.newest_version);
  fields("newest_since", set.newest_since);
}

Expected<RunnerRun> ParseRunnerRun(std::string_view text) {
  Expected<RunnerRun> run = ReadRecord(text, RunnerRun());
  if (!run) return run;
  if (!run->state) return Unexpected(Verdict::kInvalid, "\"state\" is missing");
  if (run->service.empty()) return Unexpected(Verdict::kInvalid, "\"service\" is missing");
  if (run->set.empty()) return Unexpected(Verdict::kInvalid, "\"set\" is missing");
  return run;
}

std::string ToJson(const RunnerRun& run) { return WriteRecord(run); }

Expected<RunnerSetRecord> ParseRunnerSetRecord(std::string_view text) {
  return ReadRecord(text, RunnerSetRecord());
}

std::string ToJson(const RunnerSetRecord& set) { return WriteRecord(set); }

std::string DescribeJob(const RunnerJob& job) {
  auto shown = [](const std::string& text) { return text.empty() ? "(unknown)" : Excerpt(text, kShownName); };
  std::string text = fmt::format("{} of {}", shown(job.job), shown(job.repository));
  return job.run_url.empty() ? text : fmt::format("{} ({})", text, Excerpt(job.run_url, 2 * kShownName));
}

void MarkJob(Node& node, const RunnerRun& run) {
  json::value data = node.user_data.value();
  json::object* mark = data.if_object();
  if (mark == nullptr) return;
  (*mark)[kRunnerKey] = json::object{{"name", run.runner_name},
                                     {"set", run.service + "/" + run.set},
                                     {"repository", run.job.repository},
                                     {"workflow", run.job.workflow},
                                     {"job", run.job.job},
                                     {"run_url", run.job.run_url}};
  node.user_data = std::move(data);
}

bool IsRunId(std::string_view text) {
  auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kRunIdDigits && std::ranges::all_of(text, is_digit);
}

}  // namespace nodepool
