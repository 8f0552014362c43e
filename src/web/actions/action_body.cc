#include "web/actions/action_body.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/provider_pause.h"
#include "sched/jobs/job_rules.h"
#include "web/json_body.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

constexpr const char* kForce = "force";
constexpr std::int64_t kMaxHeldForJob = 1'000'000;

void RefuseParameters(const Request& request, std::string_view known = "") {
  for (const auto& [name, value] : request.query) {
    if (name != known)
      throw Error(Verdict::kInvalid, fmt::format("There is no parameter \"{}\" here.", Excerpt(name)));
  }
}

}  // namespace

Expected<operate::HoldOrder> ReadHoldOrder(const Request& request) {
  return ReadBody<operate::HoldOrder>([&request](operate::HoldOrder& order) {
    RefuseParameters(request);
    BodyReaders readers = {
        {"reason", [&](const json::value& v) { order.comment = ReadText("reason", v, kMaxOperatorReason); }},
        {"seconds",
         [&](const json::value& v) { order.seconds = ReadWhole("seconds", v, 1, kMaxHoldSeconds); }}};
    ReadOptionalMembers(request, readers);
  });
}

JsonType HoldOrderType() {
  return ObjectOf(
      {{"reason", Text(), "for people, at most 1000 bytes", true},
       {"seconds", Whole(), "how long; without it as the record says, and until max-hold-age", true}});
}

Expected<PauseOrder> ReadPauseOrder(const Request& request) {
  return ReadBody<PauseOrder>([&request](PauseOrder& order) {
    RefuseParameters(request);
    BodyReaders readers = {
        {"reason", [&](const json::value& v) { order.reason = ReadText("reason", v, kMaxOperatorReason); }},
        {"drain", [&](const json::value& v) { order.is_drained = ReadFlag("drain", v); }}};
    ReadOptionalMembers(request, readers);
  });
}

JsonType PauseOrderType() {
  return ObjectOf({{"reason", Text(), "for people, at most 1000 bytes", true},
                   {"drain", Flag(), "true: its unused nodes are deleted, too", true}});
}

Expected<JobRule> ReadJobRule(const Request& request) {
  return ReadBody<JobRule>([&request](JobRule& rule) {
    RefuseParameters(request);
    BodyReaders readers = {{"name", [&](const json::value& v) { rule.name = ReadText("name", v); }},
                           {"hold_on_failure", [&](const json::value& v) {
                              rule.hold_on_failure = ReadWhole("hold_on_failure", v, 0, kMaxHeldForJob);
                            }}};
    ReadMembers(request, readers);
    if (rule.name.empty()) throw Error(Verdict::kInvalid, "name is required.");
    Expected<sched::JobMatcher> matcher = sched::JobMatcher::Make(rule.name);
    if (!matcher) throw Error(Verdict::kInvalid, "name cannot be used: " + matcher.error().message() + ".");
  });
}

JsonType JobRuleType() {
  return ObjectOf({{"name", Text(), "of the job, or a regular expression that begins with ^"},
                   {"hold_on_failure", Whole(), "how many nodes are held at most; without it none", true}});
}

Expected<void> ReadNothing(const Request& request) {
  try {
    RefuseParameters(request);
    ReadOptionalMembers(request, {});
    return {};
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

Expected<bool> ReadForce(const Request& request) {
  return ReadBody<bool>([&request](bool& is_forced) {
    RefuseParameters(request, kForce);
    ReadOptionalMembers(request, {});
    const std::string& value = request.Parameter(kForce);
    is_forced = value == "true";
    if (!is_forced && !value.empty() && value != "false") throw WrongValue(kForce, "true or false");
  });
}

}  // namespace nodepool::web
