#include "cli/requester.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <ostream>

#include "async/cleanup.h"
#include "cli/interruption.h"
#include "cli/offered_labels.h"
#include "cli/page.h"
#include "cli/session_claim.h"
#include "cli/wait_line.h"
#include "listing/node_listing.h"

namespace nodepool::cli {
namespace {

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

}  // namespace

Task<int> Request(Context& context, RequestOptions options) {
  std::string fault = co_await FaultOfLabels(context, options.wish.labels);
  if (!fault.empty() && options.wait) {
    context.logger.Error("{}", fault);
    co_return 1;
  }
  if (!fault.empty()) context.logger.Warning("{}; the request is made all the same", fault);
  int status =
      options.wait ? co_await RequestAndKeep(context, options) : co_await RequestOnly(context, options);
  co_return status;
}

}  // namespace nodepool::cli
