#include <CLI/CLI.hpp>
#include <boost/json/value_from.hpp>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "cli/show_listing.h"
#include "listing/request_listing.h"
#include "model/cell.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {

namespace {

enum class RequestColumns {
  kBrief,     // the columns of operations.md 5.4
  kDetail,    // also age, tenant, why pools declined it and, queried from the launchers, what decides that it
              // waits
  kAllPools,  // the same, with what each pool says
};

namespace json = boost::json;
using listing::Column;
using listing::Importance;
using listing::Listing;

// The reason is what --detail is for: other columns are omitted for it.
constexpr listing::Fit kReason{Importance::kAlways, 60};

std::vector<Column> DetailColumns() {
  std::vector<Column> columns = listing::RequestColumns();
  columns.insert(columns.end(),
                 {{.key = "age",
                   .title = "Age",
                   .kind = listing::Kind::kTime,
                   .fit = {Importance::kHigh},
                   .since = "since"},
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

Task<ListingCommand::Listings> MakeRequests(Context& context, const Caches& caches, RequestColumns columns,
                                            Output output) {
  ListingCommand::Listings listings;
  if (columns == RequestColumns::kBrief) {
    listings.push_back(listing::ListRequests(caches.requests.all()));
  } else {
    LaunchersAnswers answers = co_await AskAboutRequests(context);
    WarnOfSilent(context, answers);
    std::erase_if(answers.deleted, [&](const auto& entry) { return caches.requests.Find(entry.first); });
    listings.push_back(ListInDetail(caches.requests.all(), answers, columns, output));
    AddRows(listings.front(), ListInDetail(answers.deleted, answers, columns, output));
  }
  co_return listings;
}

// `nodepool request-list [--detail]`: every request, by id; in detail followed by those that failed and were
// deleted in the last hour, as the launchers remember them. The reasons are lines of text in tables, and the
// launchers' answers in JSON.
ListingCommand RequestListing(RequestColumns columns, Output output) {
  return {.needs = {&Caches::requests},
          .columns = columns == RequestColumns::kBrief ? listing::RequestColumns() : DetailColumns(),
          .make = [columns, output](Context& context, const Caches& caches) {
            return MakeRequests(context, caches, columns, output);
          }};
}

}  // namespace

void RegisterRequestList(CLI::App& app, Invocation& invocation) {
  auto shows_all_pools = std::make_shared<bool>(false);
  CLI::App* command = AddDetailedListing(
      app, invocation, "request-list", "list node requests",
      "also say why requests wait, and why they have failed in the last hour; asks the launchers",
      [shows_all_pools](Output output, bool is_detailed) {
        if (*shows_all_pools) return RequestListing(RequestColumns::kAllPools, output);
        return RequestListing(is_detailed ? RequestColumns::kDetail : RequestColumns::kBrief, output);
      });
  command->add_flag("--all-pools", *shows_all_pools,
                    "as --detail, with what each pool says in place of the reason that decides");
}

}  // namespace nodepool::cli
