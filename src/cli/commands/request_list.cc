#include "cli/commands/request_list.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "listing/request_listing.h"
#include "model/cell.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Column;
using listing::Importance;
using listing::Listing;

std::vector<Column> DetailColumns() {
  std::vector<Column> columns = listing::RequestColumns();
  columns.insert(columns.end(),
                 {{.key = "age", .title = "Age", .kind = listing::Kind::kTime, .fit = {Importance::kHigh}},
                  {.key = "tenant_name", .title = "Tenant", .fit = {Importance::kMedium, 12}},
                  {.key = "waits", .title = "Waits For", .fit = listing::kSentence}});
  return columns;
}

// Adds the columns of --detail.
void AddDetail(Listing& listing, const store::RequestCache& requests, const WaitsByRequest& waits,
               Output output) {
  listing.columns = DetailColumns();
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
          .columns = columns == RequestColumns::kBrief ? listing::RequestColumns() : DetailColumns(),
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
