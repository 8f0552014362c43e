#include "web/requests/request_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/digest.h"
#include "base/text.h"
#include "model/json.h"
#include "model/provider_pause.h"
#include "web/body_table.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

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
