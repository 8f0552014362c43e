#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/node_claim.h"
#include "listing/record_listing.h"
#include "operate/actions.h"
#include "store/cache/cached_records.h"

namespace nodepool::cli {

namespace {

struct RequestOptions {
  NodeWish wish;
  bool wait = false;
  std::optional<Duration> hold_for;  // none: until interrupted or released
  Output output = Output::kTable;
};

namespace json = boost::json;

void Print(Context& context, const SessionClaim& claim, Output output) {
  using listing::Importance;
  listing::Listing listing{{{.key = "id", .title = "ID", .fit = {Importance::kAlways}},
                            {.key = "label", .title = "Label", .fit = listing::kName},
                            {.key = "provider", .title = "Provider", .fit = listing::kName},
                            {.key = "address", .title = "Address", .fit = {Importance::kHigh}},
                            {.key = "connection_port", .title = "Port", .fit = {Importance::kHigh}},
                            {.key = "username", .title = "Username", .fit = listing::kName}},
                           {}};
  bool is_json = output == Output::kJson;
  const std::vector<ClaimedNode> nodes = claim.nodes();  // to which the cells refer
  if (is_json) listing.columns.push_back({.key = "host_keys", .title = "Host Keys"});
  for (const auto& [id, record] : nodes) {
    listing.rows.push_back({Cell::OfText(id.value), JsonNames(record.type),
                            Cell::OfText(record.provider.value), TextCell(record.interface_ip),
                            listing::ShownPort(record), TextCell(record.username)});
    if (is_json) listing.rows.back().emplace_back(json::value_from(record.host_keys));
  }
  if (is_json) {
    context.out << fmt::format(R"({{"request":{},"nodes":{}}})",
                               json::serialize(json::value(claim.request().value)),
                               ToJson(listing, context.loop.Now()))
                << std::endl;
    return;
  }
  context.out << fmt::format("Request {} fulfilled after {:.1f} s; the nodes are in use by this command.\n",
                             claim.request(), claim.SecondsSinceBegin())
              << TextOf(listing, PageOf(context, Output::kTable)) << std::endl;
}

// An interruption before the nodes are ready is a failure, one afterwards the normal end: then `is_served`.
Task<> Serve(Context& context, SessionClaim& claim, const RequestOptions& options, bool& is_served) {
  co_await ObtainShowingWhy(context, claim);
  is_served = true;
  Print(context, claim, options.output);
  SteadyTime end = options.hold_for ? context.loop.SteadyNow() + *options.hold_for : SteadyTime::max();
  co_await claim.Keep(end);
}

Task<int> RequestAndKeep(Context& context, const RequestOptions& options) {
  auto claim = std::make_unique<SessionClaim>(context, options.wish);
  bool is_served = false;
  auto end = [&claim] { return claim->End(); };
  Task<> serve = UntilInterrupted(Serve(context, *claim, options, is_served));
  co_await WithCleanup(std::move(serve), end);
  co_return is_served ? 0 : 1;
}

Task<int> RequestOnly(Context& context, const RequestOptions& options) {
  NodeRequest request = RequestFor(options.wish, context);
  RequestId id = co_await context.store.requests.Create(Precedence(options.wish), request, false);
  if (options.output == Output::kJson) {
    json::object result;
    result["request"] = id.value;
    context.out << result << std::endl;
  } else {
    context.out << id.value << std::endl;
  }
  co_return 0;
}

// `nodepool request LABEL...`: requests nodes as any client does (coordination.md 12.1).
//
// Without `wait` the request is persistent; the command prints its id and ends. The nodes stay allocated to
// it until `nodepool release` is called.
//
// With `wait` it is ephemeral. Once it is fulfilled, the command locks all nodes or none, deletes the
// request, sets the nodes in-use, prints them, and keeps them until `hold_for` has passed, a `nodepool
// release` asks for them or the task is cancelled; then it sets them used and unlocks them. Status 1 if it
// got no nodes. If no registered pool offers one of the labels, it fails at once without a request; without
// `wait` that is a warning.
Task<int> Request(Context& context, RequestOptions options) {
  std::string fault = co_await FaultOfWish(context, options.wish);
  if (!fault.empty() && options.wait) {
    context.logger.Error("{}", fault);
    co_return 1;
  }
  if (!fault.empty()) context.logger.Warning("{}; the request is made all the same", fault);
  int status =
      options.wait ? co_await RequestAndKeep(context, options) : co_await RequestOnly(context, options);
  co_return status;
}

struct RequestValues {
  WishArguments wish;
  RequestOptions options;
  std::string hold_for;
  bool is_json = false;
};

RequestOptions RequestOptionsOf(const RequestValues& values) {
  RequestOptions options = values.options;
  if (!values.hold_for.empty()) {
    if (!options.wait) throw CLI::RequiresError("--hold-for", "--wait");
    Expected<Duration> duration = ParseDuration(values.hold_for);
    if (!duration) throw CLI::ValidationError("--hold-for", duration.error().message());
    options.hold_for = *duration;
  }
  options.wish = values.wish.ToWish();
  options.output = values.is_json ? Output::kJson : Output::kTable;
  return options;
}

}  // namespace

NodeWish WishArguments::ToWish() const {
  NodeWish result = wish;
  for (const std::string& label : labels) result.labels.emplace_back(label);
  result.provider = ProviderName(provider);
  return result;
}

void RegisterRequest(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<RequestValues>();
  RequestOptions& options = values->options;
  CLI::App* command = app.add_subcommand("request", "ask for nodes, as a CI system does");
  command->add_option("LABEL", values->wish.labels, "label of a node; one for each node")
      ->required()
      ->type_name("");
  command->add_flag("--wait", options.wait, "wait for the nodes and keep them while this command runs");
  command
      ->add_option("--hold-for", values->hold_for,
                   "with --wait: give the nodes back after this time, e.g. 90s or 2h")
      ->type_name("TIME");
  AddWishOptions(*command, values->wish);
  command->add_flag("--json", values->is_json, "print JSON instead of text");
  command->callback([&invocation, values] {
    invocation.command = [options = RequestOptionsOf(*values)](Context& context) {
      return Request(context, options);
    };
  });
}

void AddWishOptions(CLI::App& command, WishArguments& arguments) {
  NodeWish& wish = arguments.wish;
  command.add_option("--priority", wish.priority, "0 to 999; smaller is served first")
      ->check(CLI::Range(0, 999))
      ->default_str("200")
      ->type_name("N");
  command.add_option("--tenant", wish.tenant, "count the nodes against this tenant's limits")
      ->type_name("NAME");
  command.add_option("--requestor", wish.requestor, "who asks, for statistics")
      ->default_str("nodepool")
      ->type_name("NAME");
  command.add_option("--provider", arguments.provider, "prefer this provider")->type_name("PROVIDER");
}

namespace {

// How long the command that holds a node may take to give it back.
constexpr Duration kHolderTimeout = std::chrono::seconds(10);

using listing::Listing;
using LockedOrNone = std::optional<store::LockedNode>;

class Releaser {
 public:
  explicit Releaser(Context& context)
      : context_(context), nodes_(context.loop, context.store.tree.client()) {}

  Task<int> Run(std::vector<std::string> names, bool is_confirmed);

 private:
  Task<bool> ReleaseMine(bool is_confirmed);
  Task<bool> ReleaseChosen(std::vector<std::string> names, bool is_confirmed);
  Task<bool> ReleaseAll(std::vector<std::string> names);
  Task<bool> ReleaseRequest(RequestId id);
  Task<bool> ReleaseNode(NodeId id);
  Task<bool> AskHolder(NodeId id);
  Task<> AwaitGivenBack(NodeId id);
  Task<bool> GiveBackUnlocked(NodeId id);
  Task<bool> SetUsed(NodeId id, LockedOrNone& node);
  Task<bool> IsOurs(RequestId id);

  bool Refuse(std::string reason) {
    context_.logger.Error("{}", reason);
    return false;
  }

  Context& context_;
  Event changed_;
  store::NodeCache nodes_;
};

Task<int> Releaser::Run(std::vector<std::string> names, bool is_confirmed) {
  Subscription watch = nodes_.OnChange([this](const NodeId&, const auto*, const auto*) { changed_.Set(); });
  auto stop = [this] { return nodes_.Stop(); };
  bool is_done = co_await WithCleanup(ReleaseChosen(std::move(names), is_confirmed), stop);
  co_return is_done ? 0 : 1;
}

Task<bool> Releaser::ReleaseChosen(std::vector<std::string> names, bool is_confirmed) {
  nodes_.Start();
  co_await nodes_.WaitSynced();
  Task<bool> release = names.empty() ? ReleaseMine(is_confirmed) : ReleaseAll(std::move(names));
  bool is_done = co_await std::move(release);
  co_return is_done;
}

Task<bool> Releaser::ReleaseMine(bool is_confirmed) {
  std::vector<OwnRequest> mine = co_await OwnRequests(context_, nodes_);
  if (mine.empty()) context_.out << fmt::format("Nothing of {} is there to release\n", context_.user);
  Listing rows = ListOwnRequests(mine);
  bool may_release = co_await MayChange(context_, rows, is_confirmed, "release", "requests");
  if (!may_release) co_return false;
  std::vector<std::string> names;
  for (const OwnRequest& own : mine) {
    if (own.is_there) {
      names.push_back(own.id.value);  // which releases its nodes
    } else {
      for (const NodeId& node : own.nodes) names.push_back(node.value);
    }
  }
  bool is_done = co_await ReleaseAll(std::move(names));
  co_return is_done;
}

Task<bool> Releaser::ReleaseAll(std::vector<std::string> names) {
  bool is_done = true;
  for (const std::string& name : names) {
    bool is_released = false;
    if (std::optional<NodeId> node = operate::ParseNodeId(name)) {
      is_released = co_await ReleaseNode(*node);
    } else if (std::optional<RequestId> request = ParseRequestName(name)) {
      is_released = co_await ReleaseRequest(*request);
    } else {
      Refuse(fmt::format("\"{}\" is neither a node (0000000012) nor a request (200-0000000003)", name));
    }
    is_done = is_done && is_released;
  }
  co_return is_done;
}

Task<bool> Releaser::IsOurs(RequestId id) {
  if (id.empty()) co_return false;
  std::optional<store::StoredRequest> request = co_await context_.store.requests.Read(id);
  co_return request&& IsMarked(request->record);
}

Task<bool> Releaser::ReleaseRequest(RequestId id) {
  std::optional<store::StoredRequest> request = co_await context_.store.requests.Read(id);
  store::FewNodes ids = nodes_.OfRequest(id);
  if (!request && ids.empty()) co_return Refuse(fmt::format("Request {} not found", id));
  if (request && !IsMarked(request->record)) {
    co_return Refuse(fmt::format("Request {} belongs to another client ({}), not to nodepool request", id,
                                 request->record.requestor.value_or("unnamed")));
  }
  bool is_done = true;
  // Nodes of a request that is not fulfilled still belong to the launcher, which frees them when the request
  // is gone.
  bool has_nodes = !request || request->record.state == RequestState::kFulfilled;
  if (has_nodes) {
    for (const NodeId& node : ids) {
      bool is_released = co_await ReleaseNode(node);
      is_done = is_done && is_released;
    }
  }
  if (is_done && request) {
    co_await context_.store.requests.Delete(id);
    context_.out << "Request " << id.value << " withdrawn" << std::endl;
  }
  co_return is_done;
}

Task<bool> Releaser::ReleaseNode(NodeId id) {
  const store::StoredNode* node = nodes_.Find(id);
  if (!node) co_return Refuse(fmt::format("Node {} not found", id));
  bool is_marked = IsMarked(node->record);
  bool is_locked = node->is_locked();
  if (is_locked && !is_marked) {
    co_return Refuse(fmt::format("Node {} is locked by another client", id));
  }
  if (is_locked) {
    bool is_given_back = co_await AskHolder(id);
    co_return is_given_back;
  }
  RequestId owner = node->record.allocated_to;
  bool is_ours = is_marked;
  if (!is_ours) is_ours = co_await IsOurs(owner);
  if (!is_ours) co_return Refuse(fmt::format("Node {} was not given to nodepool request", id));
  bool is_given_back = co_await GiveBackUnlocked(id);
  co_return is_given_back;
}

Task<bool> Releaser::AskHolder(NodeId id) {
  auto ask = [](Node& node) {
    if (!IsMarked(node)) return store::Change::kSkip;
    AskForRelease(node);
    return store::Change::kWrite;
  };
  co_await context_.store.nodes.UpdateUnlocked(id, ask);
  SteadyTime deadline = context_.loop.SteadyNow() + kHolderTimeout;
  bool is_given_back = co_await EndsBy(context_.loop, deadline, "release", AwaitGivenBack(id));
  if (!is_given_back)
    co_return Refuse(
        fmt::format("The command that holds node {} does not answer; the request to release it stays", id));
  context_.out << "Node " << id.value << " released" << std::endl;
  co_return true;
}

Task<> Releaser::AwaitGivenBack(NodeId id) {
  while (true) {
    changed_.Reset();
    const store::StoredNode* node = nodes_.Find(id);
    if (!node || node->record.state != NodeState::kInUse) co_return;
    co_await changed_.Wait();
  }
}

// A node of a request without a waiting command, or whose command died.
Task<bool> Releaser::GiveBackUnlocked(NodeId id) {
  auto give_back = [this, id](LockedOrNone& node) { return SetUsed(id, node); };
  bool is_given_back = co_await Bracket(context_.store.nodes.TryLock(id), give_back, &UnlockNode);
  co_return is_given_back;
}

Task<bool> Releaser::SetUsed(NodeId id, LockedOrNone& node) {
  if (!node) co_return Refuse(fmt::format("Node {} was locked by another client meanwhile", id));
  WallTime now = context_.loop.Now();
  auto change = [now](Node& record) {
    if (record.state != NodeState::kReady && record.state != NodeState::kInUse) return store::Change::kSkip;
    record.SetState(NodeState::kUsed, now);
    return store::Change::kWrite;
  };
  co_await node->Update(change);
  context_.out << "Node " << id.value << " released" << std::endl;
  co_return true;
}

// `nodepool release [REQUEST-or-NODE...]`: gives back what `nodepool request` got, in this terminal or
// another; without names, everything that requests of `context.user` got, after a confirmation if that is
// more than one request (MayChange() in cli/command.h). A request that is still waiting is withdrawn.
// Nodes become `used`, and are then deleted. Requests and nodes of other clients are refused. Status 1 if
// anything was not released.
Task<int> Release(Context& context, std::vector<std::string> names, bool is_confirmed) {
  auto releaser = std::make_unique<Releaser>(context);
  int status = co_await releaser->Run(std::move(names), is_confirmed);
  co_return status;
}

}  // namespace

void RegisterRelease(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::vector<std::string> names;
    bool is_confirmed = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("release", "give back what `nodepool request` got");
  command
      ->add_option("REQUEST-or-NODE", values->names,
                   "ids of requests or nodes; without any, all that you have requested here")
      ->type_name("");
  command->add_flag("--yes", values->is_confirmed, "do not ask when that is more than one request");
  OnCommand(*command, invocation,
            [values](Context& context) { return Release(context, values->names, values->is_confirmed); });
}

}  // namespace nodepool::cli
