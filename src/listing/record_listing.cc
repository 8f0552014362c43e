#include "listing/record_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/json.h"

namespace nodepool::listing {

namespace {

namespace json = boost::json;

const std::vector<Column>& AllColumns() {
  static const std::vector<Column> columns = {
      {.key = "id", .title = "ID", .fit = {Importance::kAlways}},
      {.key = "provider", .title = "Provider", .kind = Kind::kProvider, .fit = kName},
      {.key = "label", .title = "Label", .kind = Kind::kLabel, .fit = kName},
      {.key = "server_id", .title = "Server ID", .fit = kLongId},
      {.key = "public_ipv4", .title = "Public IPv4"},
      {.key = "ipv6", .title = "IPv6", .fit = {Importance::kLow}},
      {.key = "state",
       .title = "State",
       .kind = Kind::kState,
       .words = NodeStateWords(),
       .fit = {Importance::kHigh}},
      {.key = "age", .title = "Age", .kind = Kind::kAge, .fit = {Importance::kHigh}, .since = "state_since"},
      {.key = "locked", .title = "Locked"},
      {.key = "pool", .title = "Pool", .fit = {Importance::kMedium, 12}},
      {.key = "hostname", .title = "Hostname", .fit = {Importance::kMedium, 12}},
      {.key = "private_ipv4", .title = "Private IPv4", .fit = {Importance::kLow}},
      {.key = "AZ", .title = "AZ", .fit = {Importance::kLow, 12}},
      {.key = "username", .title = "Username", .fit = {Importance::kLow, 12}},
      {.key = "connection_port", .title = "Port", .fit = {Importance::kLow}},
      {.key = "launcher", .title = "Launcher", .fit = {Importance::kLow, 12}},
      {.key = "allocated_to", .title = "Allocated To"},
      {.key = "hold_job", .title = "Hold Job", .fit = {Importance::kMedium, 12}},
      {.key = "comment", .title = "Comment", .fit = {Importance::kMedium, 24}},
      {.key = "user_data", .title = "User Data", .fit = {Importance::kLow, 12}},
      {.key = "driver_data", .title = "Driver Data", .fit = {Importance::kLow, 12}}};
  return columns;
}

constexpr std::size_t kBriefColumns = 9;

std::vector<Cell> Row(const store::StoredNode& node) {
  const Node& record = node.record;
  std::vector<Cell> cells;
  cells.reserve(AllColumns().size());
  auto add = [&](auto&&... values) { (cells.emplace_back(std::forward<decltype(values)>(values)), ...); };
  add(Cell::OfText(node.id.value), TextOrNull(record.provider.value), JsonNames(record.type),
      Cell::Of(record.external_id), TextCell(record.public_ipv4), TextCell(record.public_ipv6),
      StateCell(record.state), ToSeconds(record.state_time),
      Cell::OfText(node.is_locked() ? "locked" : "unlocked"), TextOrNull(record.pool.value),
      TextCell(record.hostname), TextCell(record.private_ipv4), TextCell(record.az),
      TextCell(record.username), ShownPort(record), TextCell(record.launcher),
      TextOrNull(record.allocated_to.value), TextCell(record.hold_job), TextCell(record.comment),
      Cell::Of(record.user_data), Cell::Of(record.driver_data));
  return cells;
}

}  // namespace

json::value ShownPort(const Node& node) {
  json::value port = node.connection_port.value();
  if (port.is_int64() || port.is_uint64()) return port;
  bool is_digits = port.is_string() && !port.as_string().empty() &&
                   std::ranges::all_of(port.as_string(), [](char c) { return c >= '0' && c <= '9'; });
  return is_digits ? port : json::value("redacted");
}

std::vector<Column> ColumnsOf(NodeColumns columns) {
  std::vector<Column> all = AllColumns();
  if (columns == NodeColumns::kBrief) all.resize(kBriefColumns);
  return all;
}

std::vector<Cell> NodeRow(const store::StoredNode& node, NodeColumns columns) {
  std::vector<Cell> row = Row(node);
  if (columns == NodeColumns::kBrief) row.resize(kBriefColumns);
  return row;
}

Listing ListNodes(const std::vector<const store::StoredNode*>& nodes, NodeColumns columns) {
  Listing listing{ColumnsOf(columns), {}};
  listing.rows.reserve(nodes.size());
  for (const store::StoredNode* node : nodes) listing.rows.push_back(NodeRow(*node, columns));
  return listing;
}

std::vector<Column> RequestColumns() {
  return {{.key = "id", .title = "Request ID", .fit = {Importance::kAlways}},
          {.key = "relative_priority", .title = "Priority", .fit = {Importance::kLow}},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = RequestStateWords(),
           .fit = {Importance::kHigh}},
          {.key = "requestor", .title = "Requestor", .fit = {Importance::kMedium, 9}},
          {.key = "node_types", .title = "Node Types", .kind = Kind::kLabel, .fit = kName},
          {.key = "nodes", .title = "Nodes", .fit = {Importance::kMedium, 10}},
          {.key = "declined_by", .title = "Declined By", .fit = {Importance::kLow, 12}},
          {.key = "event_id", .title = "Event ID", .fit = kLongId}};
}

std::vector<Cell> RequestRow(const store::StoredRequest& request) {
  const NodeRequest& record = request.record;
  return {request.id.value,
          NumberValue(record.relative_priority),
          StateCell(record.state),
          TextCell(record.requestor),
          JsonNames(record.node_types),
          JsonNames(record.nodes),
          JsonNames(record.declined_by),
          TextCell(record.event_id)};
}

Listing ListRequests(const std::map<RequestId, store::StoredRequest>& requests) {
  Listing listing{RequestColumns(), {}};
  for (const auto& [id, request] : requests) listing.rows.push_back(RequestRow(request));
  return listing;
}

WallTime WaitsSince(const NodeRequest& request) { return request.created_time.value_or(request.state_time); }

std::vector<const store::StoredRequest*> WaitingRequests(const store::RequestCache& requests) {
  std::vector<const store::StoredRequest*> waiting;
  for (RequestState state : {RequestState::kRequested, RequestState::kPending}) {
    for (const RequestId& id : requests.InState(state)) waiting.push_back(requests.Find(id));
  }
  std::ranges::sort(waiting, [](const store::StoredRequest* a, const store::StoredRequest* b) {
    WallTime of_a = WaitsSince(a->record), of_b = WaitsSince(b->record);
    return of_a != of_b ? of_a < of_b : a->id < b->id;
  });
  return waiting;
}

std::vector<Column> WaitingColumns() {
  return {{.key = "id", .title = "Request", .fit = {Importance::kAlways}},
          {.key = "age", .title = "Waits", .kind = Kind::kTime, .fit = {Importance::kHigh}, .since = "since"},
          {.key = "state", .title = "State", .kind = Kind::kState, .words = RequestStateWords()},
          {.key = "node_types", .title = "Labels", .kind = Kind::kLabel, .fit = kName},
          {.key = "requestor", .title = "Requestor", .fit = {Importance::kLow, 9}},
          {.key = "why", .title = "Why", .fit = kSentence}};
}

Listing ListWaiting(const store::RequestCache& requests, const Reasons& why) {
  Listing listing{WaitingColumns(), {}};
  for (const store::StoredRequest* request : WaitingRequests(requests)) {
    const NodeRequest& record = request->record;
    auto reason = why.find(request->id);
    listing.rows.push_back({request->id.value, UnixTime(WaitsSince(record)), StateCell(record.state),
                            JsonNames(record.node_types), TextCell(record.requestor),
                            reason == why.end() ? Cell() : Cell(reason->second)});
  }
  return listing;
}

Listing ListWaitingByReason(const store::RequestCache& requests, const Reasons& why, std::size_t limit) {
  struct Group {
    const store::StoredRequest* first;
    std::size_t count = 0;
    std::set<LabelName> labels;
  };
  std::vector<Group> groups;
  std::map<std::string, std::size_t> group_of;  // by reason
  for (const store::StoredRequest* request : WaitingRequests(requests)) {
    auto reason = why.find(request->id);
    auto [place, is_new] = group_of.try_emplace(reason == why.end() ? "" : reason->second, groups.size());
    if (is_new) groups.push_back({request});
    Group& group = groups[place->second];
    ++group.count;
    group.labels.insert(request->record.node_types.begin(), request->record.node_types.end());
  }
  Listing listing{
      {{.key = "count", .title = "Requests", .fit = {Importance::kAlways}},
       {.key = "age", .title = "Waits", .kind = Kind::kTime, .fit = {Importance::kHigh}},
       {.key = "id", .title = "For Longest", .fit = {Importance::kHigh}},
       {.key = "labels", .title = "Labels", .kind = Kind::kLabel, .fit = {Importance::kMedium, 12}},
       {.key = "why", .title = "Why", .fit = {Importance::kAlways, 40}}},
      {}};
  for (const Group& group : groups) {
    if (listing.rows.size() == limit) break;
    auto reason = why.find(group.first->id);
    std::vector<LabelName> labels(group.labels.begin(), group.labels.end());
    listing.rows.push_back({Cell(group.count), UnixTime(WaitsSince(group.first->record)),
                            Cell(group.first->id.value), JsonNames(labels),
                            reason == why.end() ? Cell() : Cell(reason->second)});
  }
  return listing;
}

std::int64_t NumberOf(const JobId& id) {
  std::int64_t number = 0;
  for (char digit : id.value) number = number * 10 + (digit - '0');
  return number;
}

std::vector<Column> JobColumns() {
  return {{.key = "id", .title = "ID", .fit = {Importance::kAlways}},
          {.key = "name", .title = "Name", .fit = kName},
          {.key = "hold_on_failure", .title = "Hold on Failure"}};
}

Listing ListJobs(const std::map<JobId, store::StoredJobRule>& rules) {
  Listing listing{JobColumns(), {}};
  for (const auto& [id, rule] : rules) {
    std::optional<std::int64_t> limit = rule.record.hold_on_failure;
    listing.rows.push_back({NumberOf(id), Cell::OfText(rule.record.name), limit ? Cell(*limit) : Cell()});
  }
  return listing;
}

namespace {

constexpr std::string_view kWaitingJob = "waiting", kLostJob = "lost";

Cell TimeOrNull(const std::optional<WallTime>& time) { return time ? Cell(UnixTime(*time)) : Cell(); }

Cell TextOrNothing(const std::string& text) { return text.empty() ? Cell() : Cell(std::string(text)); }

std::optional<WallTime> SinceOf(const RunnerRun& run) {
  switch (*run.state) {
    case RunState::kWanted:
      return run.created_time;
    case RunState::kOnline:
      return run.online_time;
    case RunState::kJob:
      return run.job_time;
    default:
      return run.node_time;
  }
}

std::string WhyOf(const RunnerRun& run, const WhyNoNode& why_no_node) {
  if (run.state == RunState::kEnding) return run.reason.value_or("");
  if (run.state != RunState::kWanted) return "";
  std::string why = why_no_node(run);
  return why.empty() ? "a node is requested" : why;
}

RunnerJobRow RowOf(const RunId& id, const RunnerRun& run, const WhyNoNode& why_no_node) {
  return {.id = id.value,
          .state = ToString(*run.state),
          .set = run.service + "/" + run.set,
          .job = run.job,
          .runner = run.runner_name,
          .node = run.node,
          .since = SinceOf(run),
          .why = WhyOf(run, why_no_node),
          .wanted_time = run.created_time,
          .node_time = run.node_time,
          .online_time = run.online_time,
          .job_time = run.job_time};
}

RunnerJobRow WaitingRow(const store::RunnerSetKey& key, const RunnerJob& job, std::string why) {
  return {.id = fmt::format("waiting-{}", job.request),
          .state = kWaitingJob,
          .set = key.str(),
          .job = job,
          .since = job.queued_time ? job.queued_time : job.assigned_time,
          .why = std::move(why)};
}

RunnerJobRow LostRow(const store::RunnerSetKey& key, const LostJob& lost) {
  return {.id = "lost-" + lost.node.value,
          .state = kLostJob,
          .set = key.str(),
          .job = lost.job,
          .node = lost.node,
          .since = lost.time,
          .why = lost.reason};
}

}  // namespace

std::vector<std::string_view> RunnerJobStates() {
  std::vector<std::string_view> states = RunStateWords();
  states.push_back(kWaitingJob);
  states.push_back(kLostJob);
  return states;
}

std::vector<RunnerJobRow> RunnerJobs(const store::RunnerCache& runners, const WhyNoNode& why_no_node) {
  std::vector<RunnerJobRow> rows;
  for (const auto& [key, set] : runners.sets()) {
    for (const RunnerJob& job : set.jobs) rows.push_back(WaitingRow(key, job, set.why));
    for (const RunnerJob& job : set.deferred)
      rows.push_back(WaitingRow(key, job, "max-per-repo is reached by its repository"));
  }
  for (const auto& [id, run] : runners.runs()) rows.push_back(RowOf(id, run, why_no_node));
  for (const auto& [key, set] : runners.sets()) {
    for (const LostJob& lost : set.lost) rows.push_back(LostRow(key, lost));
  }
  return rows;
}

std::vector<Column> RunnerJobColumns() {
  return {{.key = "set", .title = "Set", .fit = kName},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = RunnerJobStates(),
           .fit = {Importance::kAlways}},
          {.key = "age", .title = "Since", .kind = Kind::kTime, .fit = {Importance::kHigh}, .since = "since"},
          {.key = "repository", .title = "Repository", .fit = kName},
          {.key = "job", .title = "Job", .fit = kName},
          {.key = "workflow", .title = "Workflow", .fit = {Importance::kLow, 12}},
          {.key = "node", .title = "Node", .fit = {Importance::kHigh}},
          {.key = "why", .title = "Why", .fit = kSentence},
          {.key = "runner", .title = "Runner", .fit = {Importance::kLow, 12}},
          {.key = "run_url", .title = "Address", .fit = {Importance::kLow, 12}},
          {.key = "id", .title = "Id", .fit = {Importance::kLow}}};
}

Listing ListRunnerJobs(const std::vector<RunnerJobRow>& jobs) {
  Listing listing{RunnerJobColumns(), {}};
  for (const RunnerJobRow& row : jobs) {
    listing.rows.push_back({Cell(std::string(row.set)), Cell(std::string(row.state)), TimeOrNull(row.since),
                            TextOrNothing(row.job.repository), TextOrNothing(row.job.job),
                            TextOrNothing(row.job.workflow), TextOrNothing(row.node.value),
                            TextOrNothing(row.why), TextOrNothing(row.runner), TextOrNothing(row.job.run_url),
                            Cell(std::string(row.id))});
  }
  return listing;
}

std::vector<RunnerSetRow> RunnerSets(const store::RunnerCache& runners) {
  std::map<store::RunnerSetKey, RunnerSetRow> rows;
  for (const auto& [key, set] : runners.sets()) rows[key] = {key, &set};
  for (const auto& [id, run] : runners.runs()) {
    auto row = rows.find({run.service, run.set});
    if (row == rows.end() || run.state == RunState::kEnding) continue;
    bool is_online = run.state == RunState::kOnline;
    ++(run.state == RunState::kJob ? row->second.busy : is_online ? row->second.idle : row->second.starting);
  }
  std::vector<RunnerSetRow> sets;
  for (auto& [key, row] : rows) sets.push_back(std::move(row));
  return sets;
}

std::vector<Column> RunnerSetColumns() {
  return {{.key = "set", .title = "Runners", .fit = {Importance::kAlways}},
          {.key = "state", .title = "State", .fit = {Importance::kHigh}},
          {.key = "age", .title = "Since", .kind = Kind::kTime, .since = "since"},
          {.key = "waiting", .title = "Waiting", .fit = {Importance::kHigh}},
          {.key = "starting", .title = "Starting"},
          {.key = "idle", .title = "Idle"},
          {.key = "busy", .title = "Busy", .fit = {Importance::kHigh}},
          {.key = "max_runners", .title = "At Most"},
          {.key = "why", .title = "Why Jobs Wait", .fit = kSentence},
          {.key = "fault", .title = "Fault", .fit = kSentence},
          {.key = "remedy", .title = "What to Do", .fit = {Importance::kLow, 24}},
          {.key = "hostname", .title = "Host", .fit = {Importance::kLow, 12}},
          {.key = "url", .title = "Address", .fit = {Importance::kLow, 12}},
          {.key = "phantoms", .title = "Phantoms", .fit = {Importance::kLow}}};
}

Listing ListRunnerSets(const std::vector<RunnerSetRow>& sets) {
  Listing listing{RunnerSetColumns(), {}};
  for (const RunnerSetRow& row : sets) {
    const RunnerSetRecord& record = *row.record;
    listing.rows.push_back({Cell(row.key.str()), TextOrNothing(record.state), TimeOrNull(record.since),
                            Cell(record.waiting), Cell(row.starting), Cell(row.idle), Cell(row.busy),
                            Cell(record.max_runners), TextOrNothing(record.why), TextOrNothing(record.fault),
                            TextOrNothing(record.remedy), TextOrNothing(record.hostname),
                            TextOrNothing(record.url), Cell(record.phantoms)});
  }
  return listing;
}

}  // namespace nodepool::listing
