#include "cli/commands/request.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "async/cleanup.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/console.h"
#include "cli/node_claim.h"
#include "cli/session_claim.h"
#include "listing/node_listing.h"

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

}  // namespace nodepool::cli
