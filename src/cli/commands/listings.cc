#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/show_listing.h"
#include "driver/loading/config_follower.h"
#include "listing/image_listing.h"
#include "listing/provider_listing.h"
#include "listing/record_listing.h"
#include "model/json.h"
#include "model/node_request.h"

namespace nodepool::cli {

namespace {

using listing::Listing;
using Listings = ListingCommand::Listings;

Task<Listings> Done(Listing listing) {
  Listings listings;
  listings.push_back(std::move(listing));
  co_return listings;
}

ListingCommand ImageListing(std::vector<listing::Column> columns, Listing (*make)(const store::ImageCache&)) {
  return {.needs = {&Caches::images},
          .columns = std::move(columns),
          .make = [make](Context&, const Caches& caches) { return Done(make(caches.images)); }};
}

// `nodepool list [--detail]`: every node, by id (operations.md 5.4).
ListingCommand NodeListing(listing::NodeColumns columns) {
  auto make = [columns](Context&, const Caches& caches) {
    std::vector<const store::StoredNode*> nodes;
    for (const auto& [id, node] : caches.nodes.all()) nodes.push_back(&node);
    return Done(ListNodes(nodes, columns));
  };
  return {
      .needs = {&Caches::nodes}, .columns = ColumnsOf(columns), .is_filtered_by_record = true, .make = make};
}

// `nodepool provider-list`: every configured provider, and what launchers report about it (D-30).
ListingCommand ProviderListing() {
  auto make = [](Context& context, const Caches& caches) {
    return Done(listing::ListProviders(driver::ConfiguredBy(*context.config).drivers, caches.components.all(),
                                       caches.nodes, caches.pauses, caches.breakers));
  };
  return {.needs = {&Caches::nodes, &Caches::components, &Caches::pauses, &Caches::breakers},
          .columns = listing::ProviderColumns(),
          .make = make};
}

// `nodepool dib-image-list`, `image-list [--detail]` and `image-status`.
ListingCommand BuildListing() { return ImageListing(listing::BuildColumns(), &listing::ListBuilds); }

ListingCommand UploadListing(listing::UploadDetail detail) {
  auto make = [detail](Context&, const Caches& caches) { return Done(ListUploads(caches.images, detail)); };
  return {.needs = {&Caches::images}, .columns = listing::UploadColumns(detail), .make = make};
}

ListingCommand ImageStatusListing() {
  auto make = [](Context& context, const Caches& caches) {
    return Done(
        listing::ListImageHealth(caches.images, driver::ConfiguredBy(*context.config), context.loop.Now()));
  };
  return {.needs = {&Caches::images}, .columns = listing::ImageHealthColumns(), .make = make};
}

namespace json = boost::json;

Listing ImageRows(const store::ImageCache& images, const ProviderName& provider) {
  std::map<store::BuildKey, json::array> uploads;  // their ids, sorted
  for (const store::BuildKey& build : images.BuildsIn(provider)) uploads[build];
  for (const auto& [key, upload] : images.uploads()) {
    if (key.provider == provider) uploads[key.build].emplace_back(key.upload.value);
  }
  Listing listing{{{"image", "Image Name"}, {"build_id", "Build ID"}, {"upload_ids", "Upload IDs"}}, {}};
  for (auto& [build, ids] : uploads) {
    listing.rows.push_back({build.image.value, build.build.value, std::move(ids)});
  }
  return listing;
}

Listing NodeRows(const store::NodeCache& nodes, const ProviderName& provider) {
  Listing listing{{{"id", "ID"}, {"server_id", "Server ID"}}, {}};
  for (const NodeId& id : nodes.OfProvider(provider)) {
    listing.rows.push_back({id.value, Cell::Of(nodes.Find(id)->record.external_id)});
  }
  return listing;
}

Listing PauseRows(const store::RecordCache<ProviderPause>& pauses, const ProviderName& provider) {
  Listing listing{{{"paused_by", "Paused By"}, {"reason", "Reason"}, {"drain", "Drain"}}, {}};
  if (const ProviderPause* pause = pauses.Find(provider))
    listing.rows.push_back({Cell::OfText(pause->paused_by), TextCell(pause->reason), pause->is_drained});
  return listing;
}

Listing BreakerRows(const store::RecordCache<Breaker>& breakers, const ProviderName& provider) {
  Listing listing{{{"pool", "Pool"},
                   {"label", "Label"},
                   {"opened", "Opened", listing::Kind::kTime},
                   {"next_probe", "Next Probe", listing::Kind::kTime},
                   {"tried_anyway", "Tried Anyway"},
                   {"why", "Why"}},
                  {}};
  auto time = [](const std::optional<WallTime>& at) { return at ? Cell(ToSeconds(*at)) : Cell(); };
  for (const auto& [key, breaker] : breakers.all()) {
    if (key.provider != provider) continue;
    listing.rows.push_back({Cell(key.pool.value), Cell(key.label.value), time(breaker.opened),
                            time(breaker.next_probe), Cell(breaker.tried_anyway), Cell(EvidenceOf(breaker))});
  }
  return listing;
}

Task<Listings> MakeInfo(Context& context, ProviderName provider, const Caches& caches) {
  Listings listings;
  listings.push_back(ImageRows(caches.images, provider));
  listings.push_back(NodeRows(caches.nodes, provider));
  listings.push_back(PauseRows(caches.pauses, provider));
  listings.push_back(BreakerRows(caches.breakers, provider));
  bool is_known = IsConfigured(*context.config, provider) ||
                  !std::ranges::all_of(listings, &std::vector<std::vector<Cell>>::empty, &Listing::rows);
  if (!is_known) throw Error(Verdict::kNotFound, UnknownProvider(*context.config, provider));
  co_return listings;
}

std::string Layout(const ProviderName& provider, const Listings& listings, const Page& page) {
  std::string images = TextOf(listings[0], page), nodes = TextOf(listings[1], page);
  if (page.output == Output::kJson) {
    return fmt::format(R"({{"provider":{},"images":{},"nodes":{},"paused":{},"breakers":{}}})",
                       json::serialize(json::value(provider.value)), images, nodes, TextOf(listings[2], page),
                       TextOf(listings[3], page));
  }
  std::string text =
      fmt::format("ZooKeeper data for provider {}\n\nImage data:\n{}\n\nNodes:\n{}", provider, images, nodes);
  if (!listings[2].rows.empty()) text += "\n\nPaused:\n" + TextOf(listings[2], page);
  if (!listings[3].rows.empty()) text += "\n\nOpen breakers:\n" + TextOf(listings[3], page);
  return text;
}

// `nodepool info PROVIDER`: the records of one provider in ZooKeeper: the builds that it has or is to have,
// and its nodes. An unknown provider gives empty tables (operations.md 5.4).
ListingCommand InfoListing(ProviderName provider) {
  return {.needs = {&Caches::nodes, &Caches::images, &Caches::pauses, &Caches::breakers},
          .make = [provider](Context& context,
                             const Caches& caches) { return MakeInfo(context, provider, caches); },
          .layout = [provider](const Listings& listings,
                               const Page& page) { return Layout(provider, listings, page); }};
}

Task<ListingCommand::Listings> MakeLabels(Context& context, const Caches& caches) {
  ListingCommand::Listings listings;
  listings.push_back(listing::ListLabels(driver::ConfiguredBy(*context.config), caches.components.all(),
                                         caches.nodes, caches.requests, caches.images, context.loop.Now()));
  co_return listings;
}

// `nodepool label-list`: every label, the pools that offer it, its nodes and the requests that wait for it.
ListingCommand LabelListing() {
  return {.needs = {&Caches::nodes, &Caches::requests, &Caches::images, &Caches::components},
          .columns = listing::LabelColumns(),
          .make = [](Context& context, const Caches& caches) { return MakeLabels(context, caches); }};
}

}  // namespace

void RegisterNodeList(CLI::App& app, Invocation& invocation) {
  AddDetailedListing(app, invocation, "list", "list nodes", "show all columns", [](Output, bool is_detailed) {
    return NodeListing(is_detailed ? listing::NodeColumns::kDetail : listing::NodeColumns::kBrief);
  });
}

void RegisterProviderList(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "provider-list", "list providers and how their launchers say they are",
             [](Output) { return ProviderListing(); });
}

void RegisterImageListings(CLI::App& app, Invocation& invocation) {
  auto add = [&](const char* name, const char* help, ListingCommand (*make)()) {
    AddListing(app, invocation, name, help, [make](Output) { return make(); });
  };
  add("dib-image-list", "list builds of images", &BuildListing);
  AddDetailedListing(
      app, invocation, "image-list", "list uploads of images",
      "also show formats, and how far uploads have come", [](Output, bool is_detailed) {
        return UploadListing(is_detailed ? listing::UploadDetail::kDetail : listing::UploadDetail::kBrief);
      });
  add("image-status", "show which images are paused or asked for, and how they are", &ImageStatusListing);
}

void RegisterInfo(CLI::App& app, Invocation& invocation) {
  auto provider = std::make_shared<std::string>();
  auto make = [provider](Output) { return InfoListing(ProviderName(*provider)); };
  AddListing(app, invocation, "info", "show what ZooKeeper knows about a provider", make)
      ->add_option("PROVIDER", *provider, "name of the provider")
      ->required()
      ->type_name("");
}

void RegisterLabelList(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "label-list", "list labels with their pools, nodes and waiting requests",
             [](Output) { return LabelListing(); });
}

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

namespace {

bool IsWanted(const auto& entry) { return entry.second.state == RunState::kWanted; }

// Why leases have no node yet, as launchers say; they are asked only if a runner waits for one.
Task<std::map<LeaseId, std::string>> AskWhyLeasesWait(Context& context, const Caches& caches) {
  std::map<LeaseId, std::string> why;
  if (std::ranges::none_of(caches.runners.runs(), [](const auto& entry) { return IsWanted(entry); }))
    co_return why;
  listing::Reasons reasons = co_await AskWhyRequestsWait(context, caches.requests);
  for (const auto& [id, reason] : reasons) {
    const store::StoredRequest* request = caches.requests.Find(id);
    std::optional<LeaseId> lease = request == nullptr ? std::nullopt : LeaseOf(request->record);
    if (lease) why[*lease] = reason;
  }
  co_return why;
}

Task<Listings> MakeRunners(Context& context, const Caches& caches) {
  std::map<LeaseId, std::string> why = co_await AskWhyLeasesWait(context, caches);
  auto why_no_node = [&why](const RunnerRun& run) {
    auto found = why.find(run.lease);
    return found == why.end() ? std::string() : found->second;
  };
  Listings listings;
  listings.push_back(listing::ListRunnerSets(listing::RunnerSets(caches.runners)));
  listings.push_back(listing::ListRunnerJobs(listing::RunnerJobs(caches.runners, why_no_node)));
  co_return listings;
}

std::string RunnersText(const Listings& listings, const Page& page) {
  std::string sets = TextOf(listings[0], page), jobs = TextOf(listings[1], page);
  if (page.output == Output::kJson) return fmt::format(R"({{"runners":{},"runner_jobs":{}}})", sets, jobs);
  return sets + "\n\n" + jobs;
}

// `nodepool runners`: every set of runners, then its jobs: those that wait, and why, those that run, and
// where (runners.md 10). Launchers are queried why runs have no node yet.
ListingCommand RunnersListing() {
  return {.needs = {&Caches::requests, &Caches::components, &Caches::runners},
          .make = [](Context& context, const Caches& caches) { return MakeRunners(context, caches); },
          .layout = &RunnersText};
}

}  // namespace

void RegisterRunners(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "runners", "list sets of runners and the jobs of CI services on nodes",
             [](Output) { return RunnersListing(); });
}

}  // namespace nodepool::cli
