#include "cli/launcher_query.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <set>

#include "async/cleanup.h"
#include "async/task_group.h"
#include "base/text.h"
#include "cli/deleted_request.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

Task<> AskForRequests(Context& context, std::string hostname, LaunchersAnswers& answers) {
  std::string target = "/api/v1/requests";
  std::string answer = co_await context.ask_launcher(hostname, std::move(target));
  AddAnswer(answers, hostname, answer, context.loop.Now());
}

Task<> AskOne(Context& context, std::string hostname, LaunchersAnswers& answers) {
  Outcome<> asked = co_await Attempt(AskForRequests(context, hostname, answers));
  if (asked) co_return;
  answers.has_all = false;
  context.logger.Warning("The launcher on {} is not reachable, so why its requests wait is not known: {}",
                         Excerpt(hostname), asked.error().message());
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

std::string WaitText(const json::array& waits) {
  auto text_of = [](const json::object& wait, std::string_view key) {
    const json::value* value = wait.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
  };
  std::vector<std::string> lines;
  for (const json::value& wait : waits) {
    const json::object& reason = wait.as_object();
    std::string line =
        text_of(reason, "provider") + " " + text_of(reason, "pool") + ": " + text_of(reason, "text");
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return Join(lines, "\n");
}

Task<LaunchersAnswers> AskAboutRequests(Context& context) {
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  std::set<std::string> hostnames;
  for (const Component& launcher : launchers) hostnames.insert(launcher.hostname);
  LaunchersAnswers answers;
  TaskGroup questions(context.loop, context.logger);
  for (const std::string& hostname : hostnames) {
    questions.Spawn("ask the launcher on " + hostname, AskOne(context, hostname, answers));
  }
  auto stop = [&questions] { return questions.Stop(); };
  co_await WithCleanup(questions.Join(), stop);
  co_return answers;
}

}  // namespace nodepool::cli
