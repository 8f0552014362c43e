#include "web/requests/request_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/digest.h"
#include "base/text.h"
#include "model/json.h"
#include "model/provider_pause.h"
#include "web/json_body.h"

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

}  // namespace

Expected<OrderBody> ReadOrderBody(const Request& request) {
  return ReadBody<OrderBody>([&request](OrderBody& body) {
    launcher::LeaseOrder& order = body.order;
    BodyReaders readers = {
        {"labels", [&](const json::value& v) { order.labels = ReadLabels(v); }},
        {"priority",
         [&](const json::value& v) {
           body.priority = static_cast<int>(ReadWhole("priority", v, 0, kMaxPriority));
         }},
        {"relative_priority",
         [&](const json::value& v) { order.relative_priority = ReadNumber("relative_priority", v); }},
        {"requestor", [&](const json::value& v) { order.requestor = ReadText("requestor", v); }},
        {"tenant", [&](const json::value& v) { order.tenant = ReadText("tenant", v); }},
        {"provider", [&](const json::value& v) { order.provider = ProviderName(ReadText("provider", v)); }},
        {"lease",
         [&](const json::value& v) { order.lease_seconds = ReadWhole("lease", v, kMinLease, kMaxLease); }}};
    ReadMembers(request, readers);
    if (order.labels.empty()) throw Error(Verdict::kInvalid, "labels is required.");
    order.asked = DigestOf(body);
  });
}

JsonType OrderBodyType() {
  return ObjectOf({{"labels", Either(ListOf(Text()), MapOf(Whole())),
                    "one for each node, or counts by label; at most 100 nodes, names of at most 128 bytes"},
                   {"priority", Whole(), "0 to 999, smaller is first; 200 without it", true},
                   {"relative_priority", Number(), "among requests of the same priority", true},
                   {"requestor", Text(), "who asks; the token's name without it", true},
                   {"tenant", Text(), "whose quota counts", true},
                   {"provider", Text(), "the one that is preferred", true},
                   {"lease", Whole(), "seconds without a renewal, 30 to 86400; 300 without it", true}});
}

Expected<HoldBody> ReadHoldBody(const Request& request) {
  return ReadBody<HoldBody>([&request](HoldBody& body) {
    BodyReaders readers = {
        {"node", [&](const json::value& v) { body.node = NodeId(ReadText("node", v)); }},
        {"reason", [&](const json::value& v) { body.reason = ReadText("reason", v, kMaxOperatorReason); }},
        {"seconds",
         [&](const json::value& v) { body.seconds = ReadWhole("seconds", v, 1, kMaxHoldSeconds); }}};
    ReadMembers(request, readers);
    if (body.node.empty()) throw Error(Verdict::kInvalid, "node is required.");
  });
}

JsonType HoldBodyType() {
  return ObjectOf({{"node", Text(), "one of the lease's"},
                   {"reason", Text(), "for people", true},
                   {"seconds", Whole(), "how long; without it until max-hold-age", true}});
}

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

}  // namespace nodepool::web
