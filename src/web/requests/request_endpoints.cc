#include "web/requests/request_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <memory>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "listing/record_listing.h"
#include "web/api/api.h"
#include "web/api/api_fields.h"
#include "web/request_bodies.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

struct NodeEntry {
  const store::StoredNode& node;
  bool is_own = false;
};

json::value PortOf(const NodeEntry& entry) {
  if (entry.is_own) return entry.node.record.connection_port.value();
  return listing::ShownPort(entry.node.record);
}

template <class OptionalText>
FieldTable<NodeEntry>::Field TextField(std::string key, OptionalText Node::*member, std::string text) {
  return {{std::move(key), Text().OrNull(), std::move(text)},
          [member](const NodeEntry& n) { return TextCell(n.node.record.*member); }};
}

const FieldTable<NodeEntry>& NodeEntryFields() {
  static const FieldTable<NodeEntry> fields({
      {{"id", Text(), "ten digits"}, [](const NodeEntry& n) { return Cell::OfText(n.node.id.value); }},
      {{"labels", ListOf(Text()), "that the node serves"},
       [](const NodeEntry& n) { return JsonNames(n.node.record.type); }},
      TextField("interface_ip", &Node::interface_ip, "the address to connect to"),
      TextField("public_ipv4", &Node::public_ipv4, "where it has one"),
      TextField("private_ipv4", &Node::private_ipv4, "where it has one"),
      TextField("public_ipv6", &Node::public_ipv6, "where it has one"),
      TextField("hostname", &Node::hostname, "as the cloud reports it"),
      TextField("connection_type", &Node::connection_type, "ssh, winrm ..."),
      {{"connection_port", Any(), "a number, or an object with access data"}, &PortOf},
      {{"host_keys", ListOf(Text()), "of its SSH server"},
       [](const NodeEntry& n) { return json::value_from(n.node.record.host_keys); }},
      TextField("username", &Node::username, "to log in with"),
      TextField("python_path", &Node::python_path, "of the Python on it, for Ansible"),
      TextField("shell_type", &Node::shell_type, "of its shell, for Ansible"),
      {{"attributes", Any(), "as configured for the pool"},
       [](const NodeEntry& n) { return n.node.record.attributes.value(); }},
      {{"provider", Text().OrNull(), "where it is"},
       [](const NodeEntry& n) { return TextOrNull(n.node.record.provider.value); }},
      TextField("cloud", &Node::cloud, "the name of the cloud in the configuration of its driver"),
      TextField("region", &Node::region, "of the cloud"),
      TextField("az", &Node::az, "availability zone"),
      TextField("image", &Node::image_id, "the cloud's image, or the upload's path"),
  });
  return fields;
}

// A node that the cache does not have any more is about to be dropped.
json::value NodesOf(const LeaseEntry& entry) {
  json::array nodes;
  for (const NodeId& id : entry.lease.record.nodes) {
    const store::StoredNode* node = entry.launcher.records().nodes.Find(id);
    if (node != nullptr) nodes.push_back(NodeEntryFields().ToJson({*node, entry.is_own}));
  }
  return nodes;
}

// Nullopt: it has no request, or none any more.
std::optional<launcher::RequestStatus> StatusOf(const LeaseEntry& entry) {
  const RequestId& request = entry.lease.record.request;
  return request.empty() ? std::nullopt : entry.launcher.FindRequest(request);
}

json::value DecidingReasonOf(const LeaseEntry& entry) {
  std::optional<launcher::RequestStatus> status = StatusOf(entry);
  return ReasonValue(status ? status->reason : std::nullopt);
}

json::value WaitsOf(const LeaseEntry& entry) {
  json::array waits;
  std::optional<launcher::RequestStatus> status = StatusOf(entry);
  if (!status) return waits;
  for (const launcher::WaitReason& reason : status->waits) waits.push_back(WaitFields().ToJson(reason));
  return waits;
}

// Null while no launcher has accepted the request.
json::value ReadyOf(const LeaseEntry& entry) {
  const store::Caches& records = entry.launcher.records();
  const RequestId& id = entry.lease.record.request;
  const store::StoredRequest* request = id.empty() ? nullptr : records.requests.Find(id);
  if (request == nullptr || request->record.state != RequestState::kPending) return {};
  auto is_ready = [&](const NodeId& node) {
    return records.nodes.Find(node)->record.state == NodeState::kReady;
  };
  return std::ranges::count_if(records.nodes.OfRequest(id), is_ready);
}

json::value SecondsOrNull(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

}  // namespace

const FieldTable<LeaseEntry>& LeaseFields() {
  static const FieldTable<LeaseEntry> fields({
      {{"id", Text(), "32 hex digits"}, [](const LeaseEntry& l) { return Cell::OfText(l.lease.id.value); }},
      {{"state", OneOf(LeaseStateWords()), "what is true of the lease", false, listing::Kind::kState},
       [](const LeaseEntry& l) { return StateCell(l.lease.record.state); }},
      {{"client", Text(), "name of the token that made it"},
       [](const LeaseEntry& l) { return Cell::OfText(l.lease.record.client); }},
      {{"labels", ListOf(Text()), "one for each node", false, listing::Kind::kLabel},
       [](const LeaseEntry& l) { return JsonNames(l.lease.record.labels); }},
      {{"requestor", Text().OrNull(), "as its client gave it, else the token's name"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.requestor); }},
      {{"tenant", Text().OrNull(), "whose quota counts"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.tenant_name); }},
      {{"request", Text().OrNull(), "id of the node request, while it waits"},
       [](const LeaseEntry& l) { return TextOrNull(l.lease.record.request.value); }},
      {{"lease", Whole(), "seconds that it lasts without a renewal"},
       [](const LeaseEntry& l) { return json::value(l.lease.record.lease_seconds); }},
      {{"created", Number().OrNull(), "seconds since the epoch"},
       [](const LeaseEntry& l) { return SecondsOrNull(l.lease.record.created_time); }},
      {{"renewed", Number().OrNull(), "seconds since the epoch"},
       [](const LeaseEntry& l) { return SecondsOrNull(l.lease.record.renewed_time); }},
      {{"failure", Text().OrNull(), "why it failed"},
       [](const LeaseEntry& l) { return TextCell(l.lease.record.failure); }},
      {{"waits", ListOf(WaitFields().type()), "why it waits, as each pool of this launcher says"}, &WaitsOf},
      {{"reason", ReasonType().OrNull(), "what decides that it waits, as in /api/v1/requests"},
       &DecidingReasonOf},
      {{"ready", Whole().OrNull(), "of a request that a launcher has accepted: how many nodes are ready"},
       &ReadyOf},
      {{"nodes", ListOf(NodeEntryFields().type()), "of a held lease"}, &NodesOf},
  });
  return fields;
}

namespace {

using config::Scope;
using launcher::PlacedOrder;

constexpr const char* kRequests = "/api/v1/requests";
constexpr const char* kRequest = "/api/v1/requests/{id}";
constexpr const char* kRenew = "/api/v1/requests/{id}/renew";
constexpr const char* kHold = "/api/v1/requests/{id}/hold";
constexpr const char* kLeases = "/api/v1/leases";
constexpr const char* kToken = "/api/v1/token";

constexpr Duration kStoreTimeout = std::chrono::seconds(10);
constexpr std::size_t kMaxListed = 2'000;

Response NoSuchLease(const Request& request) {
  return ErrorResponse(request, 404, "There is no such request; it may have ended.");
}

// Empty: the order was not refused.
std::string WhyRefused(const PlacedOrder& placed, const Caller& caller, std::size_t count) {
  using Result = PlacedOrder::Result;
  if (placed.result == Result::kTooMany)
    return fmt::format(
        "The token {} allows {} nodes at a time; it has {}, held ones included, and {} more are "
        "asked for.",
        caller.name(), *caller.token->max_nodes, placed.nodes, count);
  if (placed.result == Result::kTooManyLeases)
    return fmt::format("The token {} has {} requests, more are not allowed; end some of them.", caller.name(),
                       launcher::kMaxLeasesOfClient);
  if (placed.result == Result::kNotOffered) return placed.fault;
  if (placed.result == Result::kFull)
    return fmt::format("There are {} requests of all tokens, more are not allowed; try again later.",
                       launcher::kMaxLeases);
  return "";
}

// The handlers, and what they share.
class RequestHandlers {
 public:
  RequestHandlers(Loop& loop, launcher::Launcher& launcher, Access& access)
      : loop_(loop), launcher_(launcher), desk_(launcher.lease_desk()), access_(access) {}

  using Step = Task<Response> (RequestHandlers::*)(const Request&, const Caller&);

  // Runs `step` for the bearer of the token; an error becomes 503.
  Task<Response> Handle(Request request, Step step);

  Task<Response> Make(const Request& request, const Caller& caller);
  Task<Response> Show(const Request& request, const Caller& caller);
  Task<Response> Renew(const Request& request, const Caller& caller);
  Task<Response> Hold(const Request& request, const Caller& caller);
  Task<Response> End(const Request& request, const Caller& caller);
  Task<Response> List(const Request& request, const Caller& caller);
  Task<Response> Token(const Request& request, const Caller& caller);

 private:
  template <class T>
  Task<T> Bounded(Task<T> task) {
    return WithDeadline(loop_, loop_.SteadyNow() + kStoreTimeout, "a request to ZooKeeper", std::move(task));
  }
  // The lease; nullopt: there is none, or the caller may not know of it.
  Task<std::optional<store::StoredLease>> FindFor(const Caller& caller, LeaseId id);
  Task<std::optional<LeaseId>> IdFor(const Caller& caller, const Request& request, std::string_view pattern);
  bool IsVisible(const store::StoredLease& lease, const Caller& caller) const;
  std::string TextOf(const store::StoredLease& lease, const Caller& caller) const;
  Task<Response> Answer(LeaseId id, const Request& request, const Caller& caller, int status);
  Task<Response> AnswerPlaced(PlacedOrder placed, const Request& request, const Caller& caller,
                              std::size_t count);

  Loop& loop_;
  launcher::Launcher& launcher_;
  launcher::LeaseDesk& desk_;
  Access& access_;
};

Task<Response> RequestHandlers::Handle(Request request, Step step) {
  std::expected<Caller, Response> caller = co_await access_.Identify(request);
  if (!caller) co_return std::move(caller.error());
  if (!launcher_.records().synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  Task<Response> work = (this->*step)(request, *caller);
  Outcome<Response> response = co_await Attempt(std::move(work));
  if (!response) co_return ErrorResponse(request, 503, response.error().message());
  co_return std::move(*response);
}

bool RequestHandlers::IsVisible(const store::StoredLease& lease, const Caller& caller) const {
  return lease.record.client == caller.name() || caller.may(Scope::kOperate);
}

Task<std::optional<store::StoredLease>> RequestHandlers::FindFor(const Caller& caller, LeaseId id) {
  std::optional<store::StoredLease> lease = co_await Bounded(desk_.Find(std::move(id)));
  if (lease && !IsVisible(*lease, caller)) lease.reset();
  co_return lease;
}

// The id in the path, if the caller may know of its lease.
Task<std::optional<LeaseId>> RequestHandlers::IdFor(const Caller& caller, const Request& request,
                                                    std::string_view pattern) {
  std::string text = ParameterIn(request.path, pattern);
  if (!IsLeaseId(text)) co_return std::nullopt;
  std::optional<store::StoredLease> lease = co_await FindFor(caller, LeaseId(std::move(text)));
  if (!lease) co_return std::nullopt;
  co_return lease->id;
}

std::string RequestHandlers::TextOf(const store::StoredLease& lease, const Caller& caller) const {
  bool is_own = lease.record.client == caller.name();
  return json::serialize(LeaseFields().ToJson({lease, launcher_, is_own}));
}

// Looks again whose lease it is: since then it may have ended, and its id come again.
Task<Response> RequestHandlers::Answer(LeaseId id, const Request& request, const Caller& caller, int status) {
  std::optional<store::StoredLease> lease = co_await FindFor(caller, std::move(id));
  if (!lease) co_return NoSuchLease(request);
  co_return UncachedJson(status, TextOf(*lease, caller));
}

Task<Response> RequestHandlers::Make(const Request& request, const Caller& caller) {
  if (!caller.may(Scope::kRequest))
    co_return ErrorResponse(request, 403,
                            fmt::format("The token {} lacks the scope request.", caller.name()));
  Expected<OrderBody> body = ReadOrderBody(request);
  if (!body) co_return RefuseBody(request, body.error());
  Expected<std::string> key = ReadIdempotencyKey(request);
  if (!key) co_return RefuseBody(request, key.error());
  std::string refusal = ApplyToken(*caller.token, *body);
  if (!refusal.empty()) {
    access_.Audit(caller, "request: refused");
    co_return ErrorResponse(request, 403, refusal);
  }
  body->order.key = *key;
  std::size_t count = body->order.labels.size();
  PlacedOrder placed = co_await Bounded(desk_.Place(body->order));
  co_return co_await AnswerPlaced(std::move(placed), request, caller, count);
}

Task<Response> RequestHandlers::AnswerPlaced(PlacedOrder placed, const Request& request, const Caller& caller,
                                             std::size_t count) {
  using Result = PlacedOrder::Result;
  if (placed.result == Result::kDiffers)
    co_return ErrorResponse(request, 409, "This Idempotency-Key was used for another request.");
  std::string refusal = WhyRefused(placed, caller, count);
  if (!refusal.empty()) {
    access_.Audit(caller, "request: refused");
    co_return ErrorResponse(request, placed.result == Result::kFull ? 503 : 409, refusal);
  }
  bool is_made = placed.result == Result::kMade;
  if (is_made) access_.Audit(caller, fmt::format("request {}: made, {} nodes", placed.id, count));
  LeaseId id = placed.id;
  Response response = co_await Answer(id, request, caller, is_made ? 201 : 200);
  response.headers.emplace_back("Location", fmt::format("{}/{}", kRequests, id));
  co_return response;
}

Task<Response> RequestHandlers::Show(const Request& request, const Caller& caller) {
  Expected<Duration> wait = ReadWait(request);
  if (!wait) co_return RefuseBody(request, wait.error());
  std::optional<LeaseId> id = co_await IdFor(caller, request, kRequest);
  if (!id) co_return NoSuchLease(request);
  if (*wait > Duration::zero()) {
    const store::StoredLease* lease = desk_.leases().Find(*id);
    SteadyTime deadline = loop_.SteadyNow() + *wait;
    if (lease != nullptr && lease->record.client == caller.name()) co_await Bounded(desk_.Renew(*id));
    co_await desk_.AwaitDecision(*id, deadline);
  }
  co_return co_await Answer(*id, request, caller, 200);
}

Task<Response> RequestHandlers::Renew(const Request& request, const Caller& caller) {
  std::optional<LeaseId> id = co_await IdFor(caller, request, kRenew);
  if (!id) co_return NoSuchLease(request);
  bool is_renewed = co_await Bounded(desk_.Renew(*id));
  if (is_renewed) co_return co_await Answer(*id, request, caller, 200);
  std::optional<store::StoredLease> lease = co_await FindFor(caller, *id);
  if (!lease) co_return NoSuchLease(request);
  co_return ErrorResponse(
      request, 409, fmt::format("The request cannot be renewed: it is {}.", ToString(*lease->record.state)));
}

Task<Response> RequestHandlers::Hold(const Request& request, const Caller& caller) {
  std::optional<LeaseId> id = co_await IdFor(caller, request, kHold);
  if (!id) co_return NoSuchLease(request);
  Expected<HoldBody> body = ReadHoldBody(request);
  if (!body) co_return RefuseBody(request, body.error());
  bool is_held = co_await Bounded(desk_.HoldNode(*id, body->node, body->reason, body->seconds));
  if (!is_held)
    co_return ErrorResponse(request, 409,
                            fmt::format("Node {} is not one of its nodes.", Excerpt(body->node.value)));
  access_.Audit(caller, fmt::format("hold {} of request {}: done", body->node, *id));
  co_return co_await Answer(*id, request, caller, 200);
}

Task<Response> RequestHandlers::End(const Request& request, const Caller& caller) {
  std::optional<LeaseId> id = co_await IdFor(caller, request, kRequest);
  if (!id) co_return NoSuchLease(request);
  co_await Bounded(desk_.End(*id));
  access_.Audit(caller, fmt::format("end request {}: done", *id));
  Response response;
  response.status = 204;
  co_return response;
}

Task<Response> RequestHandlers::List(const Request& request, const Caller& caller) {
  Expected<Query> query = ReadQuery(request, LeaseFields().type().fields);
  if (!query) co_return RefuseBody(request, query.error());
  std::size_t limit = std::min(query->limit, kMaxListed);
  std::string body = R"({"leases":[)";
  std::size_t count = 0;
  bool is_complete = true;
  auto append = [&](const store::StoredLease& lease) {
    LeaseEntry entry{lease, launcher_, lease.record.client == caller.name()};
    if (!IsAskedFor(LeaseFields(), entry, query->filter)) return true;
    is_complete = count < limit;
    if (!is_complete) return false;
    body += count++ > 0 ? "," : "";
    body += json::serialize(LeaseFields().ToJson(entry));
    return true;
  };
  const store::LeaseCache& leases = desk_.leases();
  if (caller.may(Scope::kOperate)) {
    for (const auto& [id, lease] : leases.all()) {
      if (!append(lease)) break;
    }
  } else {
    for (const LeaseId& id : leases.OfClient(caller.name())) {
      if (!append(*leases.Find(id))) break;
    }
  }
  body += is_complete ? R"(],"is_complete":true})" : R"(],"is_complete":false})";
  co_return UncachedJson(200, std::move(body));
}

// What the bearer may do, so that a client can offer it or not.
Task<Response> RequestHandlers::Token(const Request&, const Caller& caller) {
  json::array scopes;
  for (Scope scope : caller.token->scopes) scopes.emplace_back(config::ToString(scope));
  json::object token{{"name", caller.name()}, {"scopes", std::move(scopes)}};
  co_return UncachedJson(200, json::serialize(token));
}

EndpointDoc TokenDoc() {
  JsonType token =
      ObjectOf({{"name", Text(), "of the token"}, {"scopes", ListOf(Text()), "read, request, operate"}});
  return {"Whose token this is, and what it allows.",
          {},
          {{"application/json", std::move(token)}},
          {401, 403, 429, 503}};
}

std::map<std::string, JsonType> LeaseAnswer() { return {{"application/json", LeaseFields().type()}}; }

EndpointDoc MakeDoc() {
  EndpointDoc doc{"Asks for nodes; the answer's Location is the request from then on.",
                  {{"Idempotency-Key", "repetitions with the same one get the same request", Text(), false,
                    ParameterDoc::Place::kHeader}},
                  LeaseAnswer(),
                  {400, 401, 403, 409, 415, 429, 503},
                  OrderBodyType()};
  doc.successes = {201, 200};
  return doc;
}

ParameterDoc IdParameter() {
  return {"id", "of the request, as its Location says", Text(), false, ParameterDoc::Place::kPath};
}

EndpointDoc ShowDoc() {
  ParameterDoc wait{"wait", "seconds to wait at most, up to 60, while it is `waiting`; renews one's own",
                    Whole()};
  return {"A request made over HTTP, with its nodes once it is `held`.",
          {IdParameter(), wait},
          LeaseAnswer(),
          {400, 401, 403, 404, 429, 503}};
}

EndpointDoc EndDoc() {
  EndpointDoc doc{"Gives the nodes back; may be repeated.", {IdParameter()}, {}, {401, 403, 404, 429, 503}};
  doc.successes = {204};
  return doc;
}

EndpointDoc ListDoc() {
  JsonType list = ObjectOf({{"leases", ListOf(LeaseFields().type()), "the entries that match"},
                            {"is_complete", Flag(), "false: there are more than the limit allows"}});
  return {"The requests that one's token made, by id; with the scope `operate` those of all.",
          ParametersOf(LeaseFields().type().fields, kMaxListed),
          {{"application/json", std::move(list)}},
          {400, 401, 403, 429, 503}};
}

}  // namespace

std::vector<Endpoint> RequestEndpoints(Loop& loop, launcher::Launcher& launcher, Access& access) {
  auto handlers = std::make_shared<RequestHandlers>(loop, launcher, access);
  auto endpoint = [&](const char* method, const char* path, RequestHandlers::Step step, EndpointDoc doc) {
    auto handle = [handlers, step](Request request) { return handlers->Handle(std::move(request), step); };
    Endpoint made{method, path, handle, std::move(doc)};
    made.callers = Endpoint::Callers::kTokens;
    return made;
  };
  EndpointDoc renew{"Keeps the nodes for another lease time.",
                    {IdParameter()},
                    LeaseAnswer(),
                    {401, 403, 404, 409, 429, 503}};
  EndpointDoc hold{"Keeps one of the nodes for a person to inspect.",
                   {IdParameter()},
                   LeaseAnswer(),
                   {400, 401, 403, 404, 409, 415, 429, 503},
                   HoldBodyType()};
  return {endpoint("POST", kRequests, &RequestHandlers::Make, MakeDoc()),
          endpoint("GET", kRequest, &RequestHandlers::Show, ShowDoc()),
          endpoint("POST", kRenew, &RequestHandlers::Renew, renew),
          endpoint("POST", kHold, &RequestHandlers::Hold, hold),
          endpoint("DELETE", kRequest, &RequestHandlers::End, EndDoc()),
          endpoint("GET", kLeases, &RequestHandlers::List, ListDoc()),
          endpoint("GET", kToken, &RequestHandlers::Token, TokenDoc())};
}

}  // namespace nodepool::web
