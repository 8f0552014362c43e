#include "cli/commands/request_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "listing/request_listing.h"
#include "model/cell.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Listing;

// One line for each pool that said why.
std::string WaitText(const json::array& waits) {
  auto text_of = [](const json::object& wait, std::string_view key) {
    const json::value* value = wait.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
  };
  std::vector<std::string> lines;
  for (const json::value& wait : waits) {
    const json::object& reason = wait.as_object();
    std::string line =
        text_of(reason, "provider") + " " + text_of(reason, "pool") + ": " + text_of(reason, "text");
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return Join(lines, "\n");
}

// Adds the columns of --detail.
void AddDetail(Listing& listing, const store::RequestCache& requests, const WaitsByRequest& waits,
               Output output) {
  listing.columns.insert(
      listing.columns.end(),
      {{"age", "Age", listing::Kind::kTime}, {"tenant_name", "Tenant"}, {"waits", "Waits For"}});
  for (std::vector<Cell>& row : listing.rows) {
    RequestId id(std::string(*row[0].text()));
    const NodeRequest& record = requests.Find(id)->record;
    row.push_back(ToSeconds(record.created_time.value_or(record.state_time)));
    row.push_back(TextCell(record.tenant_name));
    auto found = waits.find(id);
    json::array reasons = found == waits.end() ? json::array() : found->second;
    row.push_back(output == Output::kJson ? json::value(std::move(reasons)) : json::value(WaitText(reasons)));
  }
}

Task<ListingCommand::Listings> Make(Context& context, const Tree& tree, RequestColumns columns,
                                    Output output) {
  ListingCommand::Listings listings;
  if (columns == RequestColumns::kBrief) {
    listings.push_back(listing::ListRequests(tree.requests().all()));
  } else {
    WaitsByRequest waits = co_await AskWhyRequestsWait(context);
    listings.push_back(listing::ListRequests(tree.requests().all()));
    AddDetail(listings.front(), tree.requests(), waits, output);
  }
  co_return listings;
}

}  // namespace

ListingCommand RequestListing(RequestColumns columns, Output output) {
  return {.needs = {.requests = true},
          .columns = listing::RequestColumns(),
          .make = [columns, output](Context& context, const Tree& tree) {
            return Make(context, tree, columns, output);
          }};
}

void RegisterRequestList(CLI::App& app, Invocation& invocation) {
  auto is_detailed = std::make_shared<bool>(false);
  auto make = [is_detailed](Output output) {
    return RequestListing(*is_detailed ? RequestColumns::kDetail : RequestColumns::kBrief, output);
  };
  AddListing(app, invocation, "request-list", "list node requests", make)
      ->add_flag("--detail", *is_detailed, "also say why requests wait; asks the launchers");
}

}  // namespace nodepool::cli
