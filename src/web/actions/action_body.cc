#include "web/actions/action_body.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/provider_pause.h"
#include "sched/jobs/job_rules.h"
#include "web/body_table.h"

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

const BodyTable<operate::HoldOrder>& HoldOrderKeys() {
  using Table = BodyTable<operate::HoldOrder>;
  static const Table table({
      Table::OfText("reason", "for people", &operate::HoldOrder::comment, kMaxOperatorReason).Optional(),
      Table::OfWhole("seconds", 1, kMaxHoldSeconds,
                     "how long; without it as the record says, and until max-hold-age",
                     &operate::HoldOrder::seconds)
          .Optional(),
  });
  return table;
}

const BodyTable<PauseOrder>& PauseOrderKeys() {
  using Table = BodyTable<PauseOrder>;
  static const Table table({
      Table::OfText("reason", "for people", &PauseOrder::reason, kMaxOperatorReason).Optional(),
      Table::OfFlag("drain", "true: its unused nodes are deleted, too", &PauseOrder::is_drained).Optional(),
  });
  return table;
}

const BodyTable<JobRule>& JobRuleKeys() {
  using Table = BodyTable<JobRule>;
  static const Table table({
      Table::OfText("name", "of the job, or a regular expression that begins with ^", &JobRule::name),
      Table::OfWhole("hold_on_failure", 0, kMaxHeldForJob, "how many nodes are held at most; without it none",
                     &JobRule::hold_on_failure)
          .Optional(),
  });
  return table;
}

// The body of an action, which takes no parameters.
template <class T>
Expected<T> ReadAction(const Request& request, const BodyTable<T>& keys) {
  return ReadBody<T>([&](T& order) {
    RefuseParameters(request);
    keys.Take(request, order);
  });
}

}  // namespace

Expected<operate::HoldOrder> ReadHoldOrder(const Request& request) {
  return ReadAction(request, HoldOrderKeys());
}
JsonType HoldOrderType() { return HoldOrderKeys().type(); }

Expected<PauseOrder> ReadPauseOrder(const Request& request) { return ReadAction(request, PauseOrderKeys()); }
JsonType PauseOrderType() { return PauseOrderKeys().type(); }

Expected<JobRule> ReadJobRule(const Request& request) {
  Expected<JobRule> rule = ReadAction(request, JobRuleKeys());
  if (!rule) return rule;
  Expected<sched::JobMatcher> matcher = sched::JobMatcher::Make(rule->name);
  if (!matcher)
    return Unexpected(Verdict::kInvalid, "name cannot be used: " + matcher.error().message() + ".");
  return rule;
}
JsonType JobRuleType() { return JobRuleKeys().type(); }

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
