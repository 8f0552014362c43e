#include "drivers/libvirt/guest/agent.h"

#include <boost/json.hpp>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/encoding.h"
#include "base/text.h"

namespace nodepool::drivers::libvirt {

namespace json = boost::json;

namespace {

constexpr Duration kAgentPause = std::chrono::milliseconds(30);

json::value AnswerIn(const std::string& text) {
  boost::system::error_code fault;
  json::value answer = json::parse(text, fault);
  const json::value* value =
      !fault && answer.is_object() ? answer.as_object().if_contains("return") : nullptr;
  if (value == nullptr) {
    throw Error(Verdict::kFail, "the guest agent's answer is not understood: " + Excerpt(text, 200));
  }
  return *value;
}

json::object FieldsOf(const json::value& answer) {
  return answer.is_object() ? answer.as_object() : json::object();
}

std::int64_t NumberIn(const json::object& answer, const char* key) {
  const json::value* value = answer.if_contains(key);
  return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

std::string BytesIn(const json::object& answer, const char* key) {
  const json::value* value = answer.if_contains(key);
  if (value == nullptr || !value->is_string()) return "";
  return FromBase64(std::string_view(value->as_string())).value_or("");
}

// The agent that is there after a while answers; one that is not there is asked again.
Task<json::value> Ask(Loop& loop, Hypervisor& host, const std::string& uuid, json::object command) {
  while (true) {
    Outcome<std::string> answer = co_await Attempt(host.AskAgent(uuid, json::serialize(command)));
    if (answer) co_return AnswerIn(*answer);
    if (!FailedWith(answer, Verdict::kRetry)) answer.error().Rethrow();
    co_await loop.SleepFor(kAgentPause);
  }
}

Task<GuestResult> Run(Loop& loop, Hypervisor& host, std::string uuid, std::string script) {
  json::object execution = {{"path", "/bin/sh"}, {"arg", {"-c", script}}, {"capture-output", true}};
  json::object start = {{"execute", "guest-exec"}, {"arguments", std::move(execution)}};
  json::value started = co_await Ask(loop, host, uuid, std::move(start));
  std::int64_t pid = NumberIn(FieldsOf(started), "pid");
  json::object query = {{"execute", "guest-exec-status"}, {"arguments", {{"pid", pid}}}};
  while (true) {
    json::value answer = co_await Ask(loop, host, uuid, query);
    json::object status = FieldsOf(answer);
    const json::value* exited = status.if_contains("exited");
    if (exited != nullptr && exited->is_bool() && exited->as_bool()) {
      co_return GuestResult{static_cast<int>(NumberIn(status, "exitcode")),
                            BytesIn(status, "out-data") + BytesIn(status, "err-data")};
    }
    co_await loop.SleepFor(kAgentPause);
  }
}

Task<> Write(Loop& loop, Hypervisor& host, std::string uuid, std::string path, std::string bytes) {
  json::object open = {{"execute", "guest-file-open"}, {"arguments", {{"path", path}, {"mode", "w"}}}};
  json::value handle = co_await Ask(loop, host, uuid, std::move(open));
  json::object content = {{"handle", handle}, {"buf-b64", Base64(bytes)}};
  json::object write = {{"execute", "guest-file-write"}, {"arguments", std::move(content)}};
  co_await Ask(loop, host, uuid, std::move(write));
  json::object close = {{"execute", "guest-file-close"}, {"arguments", {{"handle", handle}}}};
  co_await Ask(loop, host, uuid, std::move(close));
}

}  // namespace

Task<> WriteInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string path, std::string bytes,
                    Duration limit) {
  SteadyTime deadline = loop.SteadyNow() + limit;
  return WithDeadline(loop, deadline, "writing to the guest",
                      Write(loop, host, std::move(uuid), std::move(path), std::move(bytes)));
}

Task<GuestResult> RunInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string script,
                             Duration limit) {
  SteadyTime deadline = loop.SteadyNow() + limit;
  return WithDeadline(loop, deadline, "a script in the guest",
                      Run(loop, host, std::move(uuid), std::move(script)));
}

}  // namespace nodepool::drivers::libvirt
