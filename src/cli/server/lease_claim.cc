#include "cli/server/lease_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iterator>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "cli/launcher_query.h"
#include "net/http/http.h"
#include "net/http/http_client.h"
#include "operate/actions.h"

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

namespace {

constexpr Duration kLongestPoll = std::chrono::seconds(30);
// A server at which too many wait answers at once.
constexpr Duration kShortestPoll = std::chrono::seconds(2);
// A lease is renewed when this part of it has passed.
constexpr int kRenewalsPerLease = 3;
constexpr Backoff::Settings kPauses{.initial = std::chrono::milliseconds(250),
                                    .max = std::chrono::seconds(10)};

// Whether the server cannot have seen the call, or has refused it.
bool IsWithoutEffect(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    return !error.may_have_been_seen();
  } catch (const Error& error) {
    return error.verdict() == Verdict::kFail || error.verdict() == Verdict::kConflict;
  } catch (...) {
    return false;
  }
}

long long WholeSeconds(Duration duration) {
  return std::chrono::ceil<std::chrono::seconds>(duration).count();
}

}  // namespace

LeaseClaim::LeaseClaim(Console& console, LeaseClient& client, NodeWish wish, LeaseTimes times)
    : console_(console),
      client_(client),
      wish_(std::move(wish)),
      times_(times),
      key_(console.random.UuidHex()) {}

Task<LeaseView> LeaseClaim::Make() {
  bool might_exist = std::exchange(may_exist_, true);
  Task<LeaseView> make = client_.Make(wish_, times_.lease, key_);
  Outcome<LeaseView> made = co_await Attempt(std::move(make));
  if (!made) {
    if (IsWithoutEffect(made.error())) may_exist_ = might_exist;
    made.error().Rethrow();
  }
  co_return std::move(*made);
}

Task<LeaseView> LeaseClaim::Poll() {
  return client_.Show(seen_.id, std::min(kLongestPoll, seen_.lasts / kRenewalsPerLease));
}
Task<LeaseView> LeaseClaim::Renew() { return client_.Renew(seen_.id); }

// A token that is refused for a while does not end what has begun.
bool LeaseClaim::IsFinal(Verdict verdict) const {
  if (!nodes_.empty()) return verdict == Verdict::kNotFound || verdict == Verdict::kConflict;
  return verdict != Verdict::kRetry && verdict != Verdict::kTimedOut;
}

Task<LeaseView> LeaseClaim::Insist(Call call, SteadyTime deadline) {
  Backoff pauses(kPauses, console_.random);
  bool is_away = false;
  while (true) {
    SteadyTime sent = console_.loop.SteadyNow();
    Task<LeaseView> once = WithDeadline(console_.loop, deadline, "an answer of the server", (this->*call)());
    Outcome<LeaseView> answer = co_await Attempt(std::move(once));
    if (answer) {
      if (is_away) console_.logger.Info("{} answers again", client_.server());
      seen_ = *answer;
      renewed_ = sent;
      co_return std::move(*answer);
    }
    SteadyTime now = console_.loop.SteadyNow();
    if (IsFinal(answer.error().verdict()) || now >= deadline) answer.error().Rethrow();
    if (!is_away) {
      console_.logger.Warning("{}; it is asked again for {} s", answer.error().message(),
                              WholeSeconds(deadline - now));
    }
    is_away = true;
    SteadyTime next = std::min(now + pauses.Next(), deadline);
    co_await console_.loop.SleepUntil(next);
    if (next == deadline) answer.error().Rethrow();
  }
}

Task<> LeaseClaim::Obtain() {
  SteadyTime first_deadline = console_.loop.SteadyNow() + times_.first_answer;
  LeaseView view = co_await Insist(&LeaseClaim::Make, first_deadline);
  console_.logger.Info("Request {} made; waiting for its nodes", view.id);
  while (view.state == LeaseState::kWaiting) {
    SteadyTime next = console_.loop.SteadyNow() + kShortestPoll;
    view = co_await Insist(&LeaseClaim::Poll, renewed_ + view.lasts);
    if (view.state == LeaseState::kWaiting) co_await console_.loop.SleepUntil(next);
  }
  if (view.state == LeaseState::kFailed)
    throw Error(Verdict::kFail, fmt::format("Request {} failed: {}", view.id, view.failure));
  if (view.state == LeaseState::kEnding)
    throw Error(Verdict::kNotFound, fmt::format("Request {} was ended before it was served", view.id));
  if (view.nodes.size() != wish_.labels.size())
    throw Error(Verdict::kConflict, fmt::format("A node of request {} was taken away", view.id));
  nodes_ = std::move(view.nodes);
}

Task<> LeaseClaim::Keep(SteadyTime end) {
  while (!nodes_.empty()) {
    SteadyTime next = std::min(end, renewed_ + seen_.lasts / kRenewalsPerLease);
    co_await console_.loop.SleepUntil(next);
    if (console_.loop.SteadyNow() >= end) co_return;
    Task<LeaseView> renew = Insist(&LeaseClaim::Renew, renewed_ + seen_.lasts);
    Outcome<LeaseView> renewed = co_await Attempt(std::move(renew));
    if (!renewed) {
      nodes_.clear();
      throw Error(Verdict::kLostSession, fmt::format("The lease of request {} ended, and with it the claim "
                                                     "to the nodes: {}",
                                                     seen_.id, renewed.error().message()));
    }
    DropNodesBut(renewed->nodes);
  }
}

void LeaseClaim::DropNodesBut(const std::vector<ClaimedNode>& kept) {
  std::erase_if(nodes_, [&](const ClaimedNode& node) {
    bool is_kept = std::ranges::find(kept, node.id, &ClaimedNode::id) != kept.end();
    if (!is_kept) console_.logger.Warning("Node {} was taken away while it was in use", node.id);
    return !is_kept;
  });
}

// The answer that names the lease may have been lost: then the same request is sent once more.
Task<> LeaseClaim::GiveBackOnce() {
  if (seen_.id.empty()) {
    Task<LeaseView> make = client_.Make(wish_, times_.lease, key_);
    seen_ = co_await std::move(make);
  }
  Task<> end = client_.End(seen_.id);
  co_await std::move(end);
  may_exist_ = false;
}

Task<> LeaseClaim::GiveBack() {
  Backoff pauses(kPauses, console_.random);
  while (true) {
    Outcome<> given = co_await Attempt(GiveBackOnce());
    if (given) co_return;
    if (!FailedWith(given, Verdict::kRetry)) given.error().Rethrow();
    Duration pause = pauses.Next();
    co_await console_.loop.SleepFor(pause);
  }
}

Task<> LeaseClaim::End() {
  if (!may_exist_) co_return;
  SteadyTime deadline = console_.loop.SteadyNow() + kGiveBackTimeout;
  Task<> give_back = WithDeadline(console_.loop, deadline, "giving the nodes back", GiveBack());
  Outcome<> given = co_await Attempt(std::move(give_back));
  if (given) co_return;
  console_.logger.Warning("{}; the server gives the nodes back when the lease ends, in {} s at most",
                          given.error().message(), WholeSeconds(times_.lease));
}

std::string LeaseClaim::Progress() const {
  if (seen_.id.empty()) return "asking";
  if (seen_.ready) return BootingText(*seen_.ready, wish_.labels.size());
  return WaitingText("waiting", seen_.why);
}

std::string LeaseClaim::WhyWaiting() const { return nodes_.empty() ? seen_.why : ""; }

// The poll under way says nothing before its end.
Task<> LeaseClaim::AskForProgress() {
  if (seen_.id.empty()) co_return;
  Task<LeaseView> show = client_.Show(seen_.id, Duration::zero());
  Outcome<LeaseView> shown = co_await Attempt(std::move(show));
  if (!shown) co_return;
  seen_.ready = shown->ready;
  seen_.why = shown->why;
}

}  // namespace nodepool::cli
