#include "cli/server/lease_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iterator>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "cli/launcher_query.h"
#include "net/http/http.h"
#include "net/http/http_client.h"
#include "operate/nodes.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;

constexpr double kMaxLeaseSeconds = 86'400;
constexpr std::size_t kMaxNodes = 100;

std::unexpected<Error> Malformed(std::string_view what) {
  return Unexpected(Verdict::kInvalid, fmt::format("The server's answer is not that of Nodepool: {}", what));
}

Node NodeOf(const json::object& entry) {
  Node node;
  for (const std::string& label : TextsIn(entry, "labels")) node.type.emplace_back(Visible(label));
  node.interface_ip = OptionalTextIn(entry, "interface_ip");
  node.connection_type = OptionalTextIn(entry, "connection_type");
  node.username = OptionalTextIn(entry, "username");
  if (const json::value* port = entry.if_contains("connection_port")) node.connection_port = *port;
  node.host_keys = TextsIn(entry, "host_keys");
  return node;
}

Expected<std::vector<ClaimedNode>> NodesIn(const json::object& lease) {
  std::vector<ClaimedNode> nodes;
  const json::array* entries = ArrayIn(lease, "nodes");
  if (entries == nullptr || entries->size() > kMaxNodes) return Malformed("nodes");
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    std::string text = entry == nullptr ? "" : TextIn(*entry, "id");
    std::optional<NodeId> id = operate::ParseNodeId(text);
    if (!id || id->value != text) return Malformed("the id of a node");
    nodes.push_back({std::move(*id), NodeOf(*entry)});
  }
  return nodes;
}

// Of a server of an older version, of the reasons of its pools.
std::string WhyIn(const json::object& lease) {
  if (const json::object* reason = ObjectIn(lease, "reason")) return Visible(TextIn(*reason, "text"));
  json::array reasons;
  if (const json::array* waits = ArrayIn(lease, "waits")) {
    std::ranges::copy_if(*waits, std::back_inserter(reasons), &json::value::is_object);
  }
  return DecidingText(reasons);
}

std::optional<std::size_t> ReadyIn(const json::object& lease) {
  const json::value* ready = lease.if_contains("ready");
  bool is_number = ready != nullptr && ready->is_int64() && ready->as_int64() >= 0;
  return is_number ? std::optional(static_cast<std::size_t>(ready->as_int64())) : std::nullopt;
}

}  // namespace

Expected<LeaseView> ReadLeaseView(std::string_view answer) {
  boost::system::error_code error;
  json::value parsed = json::parse(answer, error);
  if (error || !parsed.is_object()) return Malformed("it is no JSON object");
  const json::object& lease = parsed.as_object();
  LeaseView view;
  view.id = LeaseId(TextIn(lease, "id"));
  if (!IsLeaseId(view.id.value)) return Malformed("id");
  std::optional<LeaseState> state = ParseLeaseState(TextIn(lease, "state"));
  if (!state) return Malformed("state");
  view.state = *state;
  double seconds = NumberIn(lease, "lease");
  if (!(seconds >= 1 && seconds <= kMaxLeaseSeconds)) return Malformed("lease");
  view.lasts = std::chrono::seconds(static_cast<std::int64_t>(seconds));
  Expected<std::vector<ClaimedNode>> nodes = NodesIn(lease);
  if (!nodes) return std::unexpected(nodes.error());
  view.nodes = std::move(*nodes);
  view.failure = Visible(TextIn(lease, "failure"));
  view.ready = ReadyIn(lease);
  view.why = WhyIn(lease);
  return view;
}

namespace {

constexpr const char* kRequests = "/api/v1/requests";
constexpr Duration kAnswerTimeout = std::chrono::seconds(15);
constexpr std::size_t kMaxAnswer = 16 << 20;
constexpr std::size_t kMaxReason = 500;

std::string PathOf(const LeaseId& id) { return fmt::format("{}/{}", kRequests, id); }

std::string BodyOf(const NodeWish& wish, Duration lease) {
  json::array labels;
  for (const LabelName& label : wish.labels) labels.emplace_back(label.value);
  json::object body{{"labels", std::move(labels)}};
  body["lease"] = std::chrono::duration_cast<std::chrono::seconds>(lease).count();
  if (wish.priority) body["priority"] = *wish.priority;
  if (wish.tenant) body["tenant"] = *wish.tenant;
  if (wish.requestor) body["requestor"] = *wish.requestor;
  if (!wish.provider.empty()) body["provider"] = wish.provider.value;
  return json::serialize(body);
}

LeaseView ParsedLease(const std::string& answer) {
  Expected<LeaseView> view = ReadLeaseView(answer);
  if (!view) throw view.error();
  return std::move(*view);
}

Verdict VerdictOfStatus(int status) {
  if (status == 404) return Verdict::kNotFound;
  if (status == 409) return Verdict::kConflict;
  return status == 429 || status >= 500 ? Verdict::kRetry : Verdict::kFail;
}

// The reason that an error's body gives.
std::string ReasonIn(const std::string& body) {
  boost::system::error_code error;
  json::value parsed = json::parse(body, error);
  return error || !parsed.is_object() ? "" : Excerpt(TextIn(parsed.as_object(), "message"), kMaxReason);
}

}  // namespace

LeaseClient::LeaseClient(net::HttpClient& http, ServerAccess access)
    : http_(http), access_(std::move(access)) {
  if (access_.ca_path.empty()) return;
  net::TlsSettings tls;
  tls.ca_path = access_.ca_path;
  tls_ = std::make_shared<const net::TlsSettings>(std::move(tls));
}

net::HttpCall LeaseClient::CallOf(const char* method, const std::string& path) const {
  net::HttpCall call;
  call.method = method;
  call.url = access_.url + path;
  call.headers = {{"Accept", "application/json"}, {"Authorization", "Bearer " + access_.token}};
  call.timeouts.answer = kAnswerTimeout;
  call.timeouts.total = 2 * kAnswerTimeout;
  call.tls = tls_;
  call.max_bytes = kMaxAnswer;
  call.follows_redirects = false;
  return call;
}

Error LeaseClient::RefusalOf(const net::HttpReply& reply) const {
  std::string reason = ReasonIn(reply.body);
  if (reply.status >= 300 && reply.status < 400)
    reason = "redirections are not followed, since the token is for this address alone";
  return Error(VerdictOfStatus(reply.status),
               fmt::format("{} answers {} {}{}{}", server(), reply.status, net::HttpReason(reply.status),
                           reason.empty() ? "" : ": ", reason));
}

void LeaseClient::RethrowWithRemedy(const Failure& failure) const {
  try {
    failure.Rethrow();
  } catch (const net::UntrustedServer& error) {
    const char* remedy = access_.ca_path.empty() ? "--ca names the file of the authority that has signed it"
                                                 : "no authority in the file of --ca has signed it";
    throw net::UntrustedServer(fmt::format("{}; {}", error.message(), remedy));
  }
}

Task<std::string> LeaseClient::Ask(net::HttpCall call) {
  Outcome<net::HttpReply> answer = co_await Attempt(http_.Send(std::move(call)));
  if (!answer) RethrowWithRemedy(answer.error());
  net::HttpReply reply = std::move(*answer);
  if (reply.status < 200 || reply.status >= 300) throw RefusalOf(reply);
  co_return std::move(reply.body);
}

Task<LeaseView> LeaseClient::Make(NodeWish wish, Duration lease, std::string key) {
  net::HttpCall call = CallOf("POST", kRequests);
  call.headers.emplace_back("Content-Type", "application/json");
  call.headers.emplace_back("Idempotency-Key", std::move(key));
  call.body = BodyOf(wish, lease);
  std::string answer = co_await Ask(std::move(call));
  co_return ParsedLease(answer);
}

Task<LeaseView> LeaseClient::Show(LeaseId id, Duration wait) {
  std::string path = PathOf(id);
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait).count();
  if (seconds > 0) path += fmt::format("?wait={}", seconds);
  net::HttpCall call = CallOf("GET", path);
  call.timeouts.answer += wait;
  call.timeouts.total += wait;
  std::string answer = co_await Ask(std::move(call));
  co_return ParsedLease(answer);
}

Task<LeaseView> LeaseClient::Renew(LeaseId id) {
  net::HttpCall call = CallOf("POST", PathOf(id) + "/renew");
  std::string answer = co_await Ask(std::move(call));
  co_return ParsedLease(answer);
}

Task<> LeaseClient::End(LeaseId id) {
  net::HttpCall call = CallOf("DELETE", PathOf(id));
  Task<std::string> ask = Ask(std::move(call));
  Outcome<std::string> ended = co_await Attempt(std::move(ask));
  if (!ended && !FailedWith(ended, Verdict::kNotFound)) ended.error().Rethrow();
}

}  // namespace nodepool::cli
