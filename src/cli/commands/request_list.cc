#include "cli/commands/request_list.h"

#include <CLI/CLI.hpp>
#include <boost/json/value_from.hpp>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "listing/request_listing.h"
#include "model/cell.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Column;
using listing::Importance;
using listing::Listing;

// The reason is what --detail is for: other columns are omitted for it.
constexpr listing::Fit kReason{Importance::kAlways, 60};

std::vector<Column> DetailColumns() {
  std::vector<Column> columns = listing::RequestColumns();
  columns.insert(columns.end(),
                 {{.key = "age", .title = "Age", .kind = listing::Kind::kTime, .fit = {Importance::kHigh}},
                  {.key = "tenant_name", .title = "Tenant", .fit = {Importance::kMedium, 12}},
                  {.key = "waits", .title = "Waits For", .fit = kReason},
                  {.key = "decline_reasons", .title = "Declined Because", .fit = listing::kSentence}});
  return columns;
}

bool Waits(const NodeRequest& request) {
  return request.state == RequestState::kRequested || request.state == RequestState::kPending;
}

// Lists the requests with the columns of --detail.
Listing ListInDetail(const std::map<RequestId, store::StoredRequest>& requests,
                     const LaunchersAnswers& answers, RequestColumns shown, Output output) {
  Listing listing = listing::ListRequests(requests);
  listing.columns = DetailColumns();
  for (std::vector<Cell>& row : listing.rows) {
    RequestId id(std::string(*row[0].text()));
    const NodeRequest& record = requests.at(id).record;
    row.push_back(ToSeconds(record.created_time.value_or(record.state_time)));
    row.push_back(TextCell(record.tenant_name));
    auto found = answers.waits.find(id);
    json::array reasons = found == answers.waits.end() ? json::array() : found->second;
    std::vector<std::string> declines = DeclineReasons(record);
    if (output == Output::kJson) {
      row.push_back(json::value(std::move(reasons)));
      row.push_back(json::value_from(declines));
    } else {
      bool shows_all = shown == RequestColumns::kAllPools;
      row.push_back(json::value(shows_all       ? WaitText(reasons)
                                : Waits(record) ? DecidingText(answers, id)
                                                : ""));
      row.push_back(json::value(Join(declines, "\n")));
    }
  }
  return listing;
}

// Adds the rows of `more`, which outlive its records.
void AddRows(Listing& listing, const Listing& more) {
  for (const std::vector<Cell>& row : more.rows) {
    std::vector<Cell>& added = listing.rows.emplace_back();
    for (const Cell& cell : row) added.emplace_back(cell.Copy());
  }
}

Task<ListingCommand::Listings> Make(Context& context, const Tree& tree, RequestColumns columns,
                                    Output output) {
  ListingCommand::Listings listings;
  if (columns == RequestColumns::kBrief) {
    listings.push_back(listing::ListRequests(tree.requests().all()));
  } else {
    LaunchersAnswers answers = co_await AskAboutRequests(context);
    WarnOfSilent(context, answers);
    std::erase_if(answers.deleted, [&](const auto& entry) { return tree.requests().Find(entry.first); });
    listings.push_back(ListInDetail(tree.requests().all(), answers, columns, output));
    AddRows(listings.front(), ListInDetail(answers.deleted, answers, columns, output));
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
  auto shows_all_pools = std::make_shared<bool>(false);
  auto make = [is_detailed, shows_all_pools](Output output) {
    RequestColumns columns = *is_detailed ? RequestColumns::kDetail : RequestColumns::kBrief;
    return RequestListing(*shows_all_pools ? RequestColumns::kAllPools : columns, output);
  };
  CLI::App* command = AddListing(app, invocation, "request-list", "list node requests", make);
  command->add_flag(
      "--detail", *is_detailed,
      "also say why requests wait, and why they have failed in the last hour; asks the launchers");
  command->add_flag("--all-pools", *shows_all_pools,
                    "as --detail, with what each pool says in place of the reason that decides");
}

}  // namespace nodepool::cli
