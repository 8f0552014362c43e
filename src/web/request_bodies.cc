#include "web/request_bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/crypto.h"
#include "base/text.h"
#include "model/json.h"
#include "model/json_scanner.h"
#include "model/provider_pause.h"
#include "sched/jobs/job_rules.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

void RequireJson(const Request& request) {
  std::string type = Lower(request.Header("content-type"));
  if (Trim(type.substr(0, type.find(';'))) != "application/json")
    throw Error(Verdict::kConflict, "The body is to be sent as application/json.");
}

}  // namespace

Error WrongValue(std::string_view key, std::string_view expected) {
  return Error(Verdict::kInvalid, fmt::format("{} is {}.", key, expected));
}

std::string ReadText(std::string_view key, const json::value& value, std::size_t limit) {
  bool is_good = value.is_string() && !value.as_string().empty() && value.as_string().size() <= limit;
  if (!is_good) throw WrongValue(key, fmt::format("a text of 1 to {} bytes", limit));
  return std::string(value.as_string());
}

std::int64_t ReadWhole(std::string_view key, const json::value& value, std::int64_t least,
                       std::int64_t most) {
  const std::int64_t* number = value.if_int64();
  if (number == nullptr || *number < least || *number > most)
    throw WrongValue(key, fmt::format("a whole number from {} to {}", least, most));
  return *number;
}

bool ReadFlag(std::string_view key, const json::value& value) {
  const bool* flag = value.if_bool();
  if (flag == nullptr) throw WrongValue(key, "true or false");
  return *flag;
}

void ReadMembers(const Request& request, const BodyReaders& readers) {
  RequireJson(request);
  JsonScanner in(request.body);
  std::map<std::string, std::string_view> members;
  auto take = [&](std::string_view written_key) {
    std::string key = DecodeJsonText(written_key);
    if (!readers.contains(key)) {
      throw Error(Verdict::kInvalid, fmt::format("There is no key \"{}\" here.", Excerpt(key)));
    }
    auto [member, is_new] = members.try_emplace(key);
    if (!is_new) throw Error(Verdict::kInvalid, fmt::format("{} is there twice.", key));
    return in.Value(member->second);
  };
  if (in.Next() != '{') throw Error(Verdict::kInvalid, "The body is not a JSON object.");
  if (!in.Members(take) || !in.End()) throw in.error().In("The body");
  for (const auto& [key, written] : members) readers.at(key)(JsonValueOf(written));
}

void ReadOptionalMembers(const Request& request, const BodyReaders& readers) {
  if (!request.body.empty()) ReadMembers(request, readers);
}

Response RefuseBody(const Request& request, const Error& error) {
  return ErrorResponse(request, error.verdict() == Verdict::kConflict ? 415 : 400, error.message());
}

Response UncachedJson(int status, std::string body) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

namespace {

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

namespace {

constexpr std::size_t kMaxNodes = 100;
constexpr std::size_t kMaxLabel = 128;
constexpr std::size_t kMaxLabels = 8 * 1024;
constexpr std::int64_t kMaxPriority = 999;
constexpr std::int64_t kMinLease = 30;
constexpr std::int64_t kMaxLease = 86'400;
constexpr int kMaxWait = 60;

double ReadNumber(std::string_view key, const json::value& value) {
  boost::system::error_code error;
  double number = value.to_number<double>(error);
  if (error) throw WrongValue(key, "a number");
  return number;
}

void AppendLabel(std::vector<LabelName>& labels, std::string name, std::int64_t count) {
  if (labels.size() + static_cast<std::size_t>(count) > kMaxNodes)
    throw WrongValue("labels", fmt::format("for at most {} nodes", kMaxNodes));
  labels.insert(labels.end(), static_cast<std::size_t>(count), LabelName(std::move(name)));
}

// They are in the lease, in the request, and in what launchers decline it with.
void CheckLength(const std::vector<LabelName>& labels) {
  std::size_t bytes = 0;
  for (const LabelName& label : labels) bytes += label.value.size();
  if (bytes > kMaxLabels)
    throw WrongValue("labels", fmt::format("a list of names of at most {} bytes in total", kMaxLabels));
}

std::vector<LabelName> ReadLabels(const json::value& value) {
  std::vector<LabelName> labels;
  if (const json::array* list = value.if_array()) {
    for (const json::value& label : *list) AppendLabel(labels, ReadText("labels", label, kMaxLabel), 1);
  } else if (const json::object* counts = value.if_object()) {
    for (const auto& [name, count] : *counts) {
      AppendLabel(labels, ReadText("labels", json::value(name), kMaxLabel),
                  ReadWhole("labels", count, 1, static_cast<std::int64_t>(kMaxNodes)));
    }
  }
  if (labels.empty()) throw WrongValue("labels", "a list of labels, or an object of counts by label");
  CheckLength(labels);
  return labels;
}

// Everything that the client chose, in one text.
std::string DigestOf(const OrderBody& body) {
  const launcher::LeaseOrder& order = body.order;
  json::array asked = {json::value(JsonNames(order.labels)),
                       body.priority ? json::value(*body.priority) : json::value(),
                       order.relative_priority,
                       order.requestor.value_or(""),
                       order.tenant.value_or(""),
                       order.provider.value,
                       order.lease_seconds};
  return Sha256Hex(json::serialize(asked));
}

const BodyTable<OrderBody>& OrderKeys() {
  using Table = BodyTable<OrderBody>;
  using launcher::LeaseOrder;
  auto of = [](auto LeaseOrder::*member) {
    return [member](OrderBody& body) -> auto& { return body.order.*member; };
  };
  static const Table table({
      {{"labels", Either(ListOf(Text()), MapOf(Whole())),
        "one for each node, or counts by label; at most 100 nodes, names of at most 128 bytes"},
       [](const json::value& value, OrderBody& body) { body.order.labels = ReadLabels(value); }},
      Table::OfWhole("priority", 0, kMaxPriority, "smaller is first; 200 without it", &OrderBody::priority)
          .Optional(),
      {{"relative_priority", Number(), "among requests of the same priority", true},
       [](const json::value& value, OrderBody& body) {
         body.order.relative_priority = ReadNumber("relative_priority", value);
       }},
      Table::OfText("requestor", "who asks; the token's name without it", of(&LeaseOrder::requestor))
          .Optional(),
      Table::OfText("tenant", "whose quota counts", of(&LeaseOrder::tenant)).Optional(),
      Table::OfText("provider", "the one that is preferred", of(&LeaseOrder::provider)).Optional(),
      Table::OfWhole("lease", kMinLease, kMaxLease, "seconds without a renewal; 300 without it",
                     of(&LeaseOrder::lease_seconds))
          .Optional(),
  });
  return table;
}

const BodyTable<HoldBody>& HoldKeys() {
  using Table = BodyTable<HoldBody>;
  static const Table table({
      Table::OfText("node", "one of the lease's", &HoldBody::node),
      Table::OfText("reason", "for people", &HoldBody::reason, kMaxOperatorReason).Optional(),
      Table::OfWhole("seconds", 1, kMaxHoldSeconds, "how long; without it until max-hold-age",
                     &HoldBody::seconds)
          .Optional(),
  });
  return table;
}

}  // namespace

Expected<OrderBody> ReadOrderBody(const Request& request) {
  return ReadBody<OrderBody>([&request](OrderBody& body) {
    OrderKeys().Take(request, body);
    if (body.order.requestor && body.order.requestor->starts_with(kOwnRequestors))
      throw WrongValue("requestor", fmt::format("a text that does not begin with {}", kOwnRequestors));
    body.order.asked = DigestOf(body);
  });
}

JsonType OrderBodyType() { return OrderKeys().type(); }

Expected<HoldBody> ReadHoldBody(const Request& request) {
  return ReadBody<HoldBody>([&request](HoldBody& body) { HoldKeys().Take(request, body); });
}

JsonType HoldBodyType() { return HoldKeys().type(); }

Expected<std::string> ReadIdempotencyKey(const Request& request) {
  if (!request.headers.contains("idempotency-key")) return std::string();
  const std::string& key = request.Header("idempotency-key");
  bool is_visible = std::ranges::all_of(key, [](char c) { return c >= '!' && c <= '~'; });
  if (key.empty() || key.size() > kMaxFieldText || !is_visible)
    return Unexpected(Verdict::kInvalid, "Idempotency-Key is 1 to 255 visible ASCII characters.");
  return key;
}

Expected<Duration> ReadWait(const Request& request) {
  for (const auto& [name, value] : request.query) {
    if (name != "wait")
      return Unexpected(Verdict::kInvalid, fmt::format("There is no parameter \"{}\" here.", Excerpt(name)));
  }
  const std::string& text = request.Parameter("wait");
  if (text.empty()) return Duration::zero();
  int seconds = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || seconds < 0 || seconds > kMaxWait)
    return Unexpected(Verdict::kInvalid, fmt::format("wait is a whole number from 0 to {}.", kMaxWait));
  return Duration(std::chrono::seconds(seconds));
}

namespace {

constexpr int kDefaultPriority = 200;

bool Allows(const config::WebToken& token, const LabelName& label) {
  if (token.labels.empty()) return true;
  return std::ranges::any_of(
      token.labels, [&](const std::string& pattern) { return config::MatchesPattern(label.value, pattern); });
}

}  // namespace

std::string ApplyToken(const config::WebToken& token, OrderBody& body) {
  launcher::LeaseOrder& order = body.order;
  for (const LabelName& label : order.labels) {
    if (Allows(token, label)) continue;
    return fmt::format("The token {} allows the labels {}, not {}.", token.name, Join(token.labels, ", "),
                       Excerpt(label.value));
  }
  order.priority = body.priority.value_or(static_cast<int>(token.priority.value_or(kDefaultPriority)));
  if (token.priority && order.priority < *token.priority)
    return fmt::format("The token {} allows priorities from {} on, not {}.", token.name, *token.priority,
                       order.priority);
  if (token.tenant && order.tenant && *order.tenant != *token.tenant)
    return fmt::format("The token {} is for the tenant {}, not {}.", token.name, *token.tenant,
                       Excerpt(*order.tenant));
  if (token.max_nodes && order.labels.size() > static_cast<std::size_t>(*token.max_nodes))
    return fmt::format("The token {} allows {} nodes at a time, not {}.", token.name, *token.max_nodes,
                       order.labels.size());
  if (token.max_nodes) order.max_nodes = static_cast<std::size_t>(*token.max_nodes);
  if (token.tenant) order.tenant = token.tenant;
  if (!order.requestor) order.requestor = token.name;
  order.client = token.name;
  return "";
}

}  // namespace nodepool::web
