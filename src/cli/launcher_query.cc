#include "cli/launcher_query.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "async/task.h"
#include "async/task_group.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "model/node_request.h"
#include "store/records.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;

// Whether an entry of a launcher's /api/v1/requests is of a request that is no longer in the tree.
bool IsDeleted(const json::object& entry) { return TruthIn(entry, "is_deleted"); }

// What such an entry, received at `now`, shows of the request. What is missing in it or malformed is left
// out.
store::StoredRequest DeletedRequest(const RequestId& id, const json::object& entry, WallTime now) {
  store::StoredRequest request;
  request.id = id;
  NodeRequest& record = request.record;
  record.state = ParseRequestState(OptionalTextIn(entry, "state").value_or(""));
  record.created_time = FromSeconds(ToSeconds(now) - NumberIn(entry, "age"));
  record.relative_priority = NumberIn(entry, "priority");
  record.requestor = OptionalTextIn(entry, "requestor");
  record.tenant_name = OptionalTextIn(entry, "tenant");
  record.event_id = OptionalTextIn(entry, "event_id");
  for (std::string& label : TextsIn(entry, "labels")) record.node_types.emplace_back(std::move(label));
  for (std::string& launcher : TextsIn(entry, "declined_by"))
    record.declined_by.emplace_back(std::move(launcher));
  for (const std::string& reason : TextsIn(entry, "decline_reasons")) AddDeclineReason(record, reason);
  return request;
}

}  // namespace

std::optional<std::string> OptionalTextIn(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

std::vector<std::string> TextsIn(const json::object& entry, std::string_view key) {
  std::vector<std::string> texts;
  const json::array* list = ArrayIn(entry, key);
  if (list == nullptr) return texts;
  for (const json::value& element : *list) {
    if (element.is_string()) texts.emplace_back(element.as_string());
  }
  return texts;
}

namespace {

Task<> AskForRequests(Context& context, LauncherAddress launcher, LaunchersAnswers& answers) {
  std::string target = "/api/v1/requests";
  std::string answer = co_await context.ask_launcher(launcher, std::move(target));
  AddAnswer(answers, launcher.hostname, answer, context.loop.Now());
}

Task<> AskOne(Context& context, LauncherAddress launcher, LaunchersAnswers& answers) {
  Outcome<> asked = co_await Attempt(AskForRequests(context, launcher, answers));
  if (asked) co_return;
  answers.silent.push_back(sched::SilentLauncher(Excerpt(launcher.hostname), asked.error().message()));
}

std::string WordOf(const json::object& wait, std::string_view key) {
  return Visible(OptionalTextIn(wait, key).value_or(""));
}

std::vector<sched::RequestReason> ReasonsIn(const json::array& waits) {
  std::vector<sched::RequestReason> reasons;
  for (const json::value& value : waits) {
    const json::object& wait = value.as_object();
    PoolKey pool{ProviderName(WordOf(wait, "provider")), PoolName(WordOf(wait, "pool"))};
    std::string code = WordOf(wait, "reason");
    std::string sentence = sched::SentenceOf(code, pool, WordOf(wait, "text"));
    reasons.push_back({std::move(code), std::move(pool), std::move(sentence), WordOf(wait, "launcher")});
  }
  return reasons;
}

std::string TextOfDeciding(const std::vector<sched::RequestReason>& reasons) {
  const sched::RequestReason* decides = sched::DecidingReason(reasons);
  return decides == nullptr ? "" : decides->text;
}

const json::array& RequiredArray(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_array()) {
    throw Error(Verdict::kInvalid, "the answer has no list \"" + std::string(key) + "\"");
  }
  return value->as_array();
}

}  // namespace

void AddAnswer(LaunchersAnswers& answers, const std::string& hostname, std::string_view answer,
               WallTime now) {
  boost::system::error_code error;
  json::value parsed = json::parse(answer, error);
  if (error || !parsed.is_object()) throw Error(Verdict::kInvalid, "the answer is no JSON object");
  for (const json::value& entry : RequiredArray(parsed.as_object(), "requests")) {
    const json::object* request = entry.if_object();
    const json::value* id = request == nullptr ? nullptr : request->if_contains("id");
    if (id == nullptr || !id->is_string())
      throw Error(Verdict::kInvalid, "a request of the answer has no id");
    RequestId request_id(std::string(id->as_string()));
    if (IsDeleted(*request)) answers.deleted.emplace(request_id, DeletedRequest(request_id, *request, now));
    for (const json::value& reason : RequiredArray(*request, "waits")) {
      if (!reason.is_object()) throw Error(Verdict::kInvalid, "a reason of the answer is no object");
      json::object told{{"launcher", hostname}};
      for (const auto& [key, value] : reason.as_object()) told[key] = value;
      answers.waits[request_id].push_back(std::move(told));
    }
  }
}

void WarnOfSilent(Context& context, const LaunchersAnswers& answers) {
  for (const sched::RequestReason& silent : answers.silent)
    context.logger.Warning("Why requests wait is not known of all: {}", silent.text);
}

std::string DecidingText(const LaunchersAnswers& answers, const RequestId& id) {
  if (!answers.has_launchers) return "no launcher is registered; start nodepool-launcher";
  auto found = answers.waits.find(id);
  std::vector<sched::RequestReason> reasons;
  if (found != answers.waits.end()) reasons = ReasonsIn(found->second);
  reasons.insert(reasons.end(), answers.silent.begin(), answers.silent.end());
  return TextOfDeciding(reasons);
}

std::string DecidingText(const json::array& waits) { return TextOfDeciding(ReasonsIn(waits)); }

std::string WaitText(const json::array& waits) {
  std::vector<std::string> lines;
  for (const sched::RequestReason& reason : ReasonsIn(waits)) {
    if (std::ranges::find(lines, reason.text) == lines.end()) lines.push_back(reason.text);
  }
  return Join(lines, "\n");
}

Task<LaunchersAnswers> AskAboutRequests(Context& context) {
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  // Those that announce no web server share the port of our configuration.
  std::map<std::pair<std::string, std::int64_t>, LauncherAddress> addresses;
  for (const Component& launcher : launchers) {
    std::int64_t port = launcher.web ? launcher.web->port : 0;
    addresses[{launcher.hostname, port}] = {launcher.hostname, launcher.web};
  }
  LaunchersAnswers answers;
  answers.has_launchers = !addresses.empty();
  TaskGroup questions(context.loop, context.logger);
  for (const auto& [key, launcher] : addresses) {
    questions.Spawn("ask the launcher on " + launcher.hostname, AskOne(context, launcher, answers));
  }
  auto stop = [&questions] { return questions.Stop(); };
  co_await WithCleanup(questions.Join(), stop);
  co_return answers;
}

Task<listing::Reasons> AskWhyRequestsWait(Context& context, const store::RequestCache& requests) {
  listing::Reasons reasons;
  if (listing::WaitingRequests(requests).empty()) co_return reasons;
  LaunchersAnswers answers = co_await AskAboutRequests(context);
  WarnOfSilent(context, answers);
  for (const store::StoredRequest* request : listing::WaitingRequests(requests))
    reasons[request->id] = DecidingText(answers, request->id);
  co_return reasons;
}

}  // namespace nodepool::cli
