#include "listing/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "listing/fit.h"
#include "listing/image_listing.h"
#include "listing/provider_listing.h"
#include "listing/record_listing.h"
#include "listing/shown_text.h"

namespace nodepool::listing {

namespace {

struct KindOfProblem {
  std::string_view kind;
  std::string_view command;  // KEY: that of the problem's subject
};

// The most urgent first.
constexpr KindOfProblem kKinds[] = {
    {"no-launcher", "journalctl -u nodepool-launcher -n 50"},
    {"no-builder", "journalctl -u nodepool-builder -n 50"},
    {"configuration-rejected", "nodepool config-validate"},
    {"provider-failing", "nodepool info KEY"},
    {"launcher-gone", "nodepool list --detail"},
    {"provider-unserved", "nodepool info KEY"},
    {"breaker-open", "nodepool info KEY"},
    {"label-unavailable", "nodepool label-list"},
    {"label-unoffered", "nodepool label-list"},
    {"runners-fault", "nodepool runners"},
    {"image-build-failed", "nodepool dib-image-list"},
    {"image-upload-failed", "nodepool image-list --detail"},
    {"image-too-old", "nodepool dib-image-list"},
    {"provider-notice", "nodepool info KEY"},
    {"runners-warning", "nodepool runners"},
    {"quota-full", "nodepool list --provider KEY"},
    {"slow-deletion", "nodepool list --provider KEY --state deleting"},
    {"short-stock", "nodepool label-list"},
    {"image-not-built", "nodepool image-status"},
    {"image-not-uploaded", "nodepool image-list --detail"},
    {"tenant-limit", "nodepool request-list --detail"},
    {"requests-waiting", "nodepool request-list --detail"},
    {"provider-paused", "nodepool provider-list"},
    {"runner-job-lost", "nodepool runners"},
};

const KindOfProblem* Find(std::string_view kind) {
  return std::ranges::find(kKinds, kind, &KindOfProblem::kind);
}

}  // namespace

std::string_view ToString(Problem::Severity severity) {
  return severity == Problem::Severity::kBad ? "bad" : "wait";
}

std::vector<std::string_view> SeverityWords() {
  return {ToString(Problem::Severity::kBad), ToString(Problem::Severity::kWait)};
}

std::vector<std::string_view> ProblemKinds() {
  std::vector<std::string_view> kinds;
  for (const KindOfProblem& kind : kKinds) kinds.push_back(kind.kind);
  return kinds;
}

std::size_t RankOf(const Problem& problem) {
  return static_cast<std::size_t>(Find(problem.kind) - std::begin(kKinds));
}

std::string CommandOf(const Problem& problem) {
  constexpr std::string_view kKey = "KEY";
  const KindOfProblem* kind = Find(problem.kind);
  if (kind == std::end(kKinds)) return "";
  std::string command(kind->command);
  std::size_t key = command.find(kKey);
  if (key != std::string::npos) command.replace(key, kKey.size(), problem.subject.key);
  return command;
}

namespace {

// What is bad, what delays most requests, what its kind says, what lasts longest.
bool IsWorse(const Problem& a, const Problem& b) {
  auto rank = [](const Problem& problem) {
    return std::tuple(problem.severity, -static_cast<std::ptrdiff_t>(problem.delayed_requests),
                      RankOf(problem), problem.since.value_or(WallTime::max()));
  };
  return rank(a) < rank(b);
}

}  // namespace

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string InOneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool Runs(const StatusRecords& records, ComponentKind kind) {
  return std::ranges::any_of(records.caches.components.all(),
                             [kind](const auto& entry) { return entry.second.kind == kind; });
}

std::string_view HostOf(std::string_view launcher_id) {
  std::size_t end = launcher_id.find("-PoolWorker.");
  return end == std::string_view::npos ? std::string_view() : launcher_id.substr(0, end);
}

Problems FindProblems(const StatusRecords& records) {
  Problems problems;
  for (auto* find : {&FindDaemonProblems, &FindProviderProblems, &FindLabelProblems, &FindImageProblems,
                     &FindRequestProblems, &FindRunnerProblems}) {
    find(problems, records);
  }
  CountDelayedRequests(problems, records);
  for (Problem& problem : problems) problem.command = CommandOf(problem);
  std::ranges::stable_sort(problems, IsWorse);
  return problems;
}

namespace {

using Place = Problem::Place;

using Indexes = std::set<std::size_t>;  // of problems
using Places = std::map<LabelName, std::vector<Place>>;
// A label, of any provider or of the requested one.
using Want = std::pair<LabelName, ProviderName>;

template <class Id>
bool Fits(const Id& pattern, const Id& id) {
  return pattern.empty() || pattern == id;
}

bool Covers(const Place& stopped, const Place& place) {
  return Fits(stopped.provider, place.provider) && Fits(stopped.pool, place.pool) &&
         Fits(stopped.label, place.label);
}

// Of all labels that pools offer without a fault: where.
Places OfferedPlaces(const std::map<std::string, Component>& components) {
  Places places;
  for (const auto& [path, component] : components) {
    for (const LabelName& label : component.supported_labels) {
      if (component.label_faults.contains(label)) continue;
      places[label].push_back({component.provider_name, component.name.value_or(PoolName()), label});
    }
  }
  return places;
}

Places ConfiguredPlaces(const Configured& configured) {
  Places places;
  for (const auto& [pool, labels] : configured.pool_labels) {
    for (const LabelName& label : labels) places[label].push_back({pool.provider, pool.pool, label});
  }
  return places;
}

bool IsOnItsWay(const NodeId& id, const store::NodeCache& nodes) {
  std::optional<NodeState> state = nodes.Find(id)->record.state;
  return state == NodeState::kBuilding || state == NodeState::kReady;
}

bool HasAllNodes(const store::StoredRequest& request, const store::NodeCache& nodes) {
  auto on_their_way = std::ranges::count_if(nodes.OfRequest(request.id),
                                            [&](const NodeId& id) { return IsOnItsWay(id, nodes); });
  return static_cast<std::size_t>(on_their_way) >= request.record.node_types.size();
}

// A provider that is requested and does not have the label binds nobody.
std::vector<Place> PlacesOf(const Places& places, const LabelName& label, const ProviderName& requested) {
  const std::vector<Place>& all = FindOrEmpty(places, label);
  std::vector<Place> wanted;
  std::ranges::copy_if(all, std::back_inserter(wanted),
                       [&](const Place& place) { return place.provider == requested; });
  return wanted.empty() ? all : wanted;
}

// What stops launches where.
class Stops {
 public:
  Stops(const Problems& problems, const StatusRecords& records)
      : problems_(problems),
        offered_(OfferedPlaces(records.caches.components.all())),
        configured_(ConfiguredPlaces(records.configured)) {}

  // The problems that stop the label everywhere; empty: it can be launched somewhere.
  const Indexes& Of(const LabelName& label, const ProviderName& requested) {
    auto [known, is_new] = known_.try_emplace({label, requested});
    if (is_new) known->second = Find(label, requested);
    return known->second;
  }

 private:
  Indexes Find(const LabelName& label, const ProviderName& requested) const {
    Indexes all = At({{}, {}, label});
    for (const Place& place : PlacesOf(offered_, label, requested)) {
      Indexes here = At(place);
      if (here.empty()) return {};
      all.merge(here);
    }
    for (const Place& place : PlacesOf(configured_, label, requested)) all.merge(At(place));
    return all;
  }

  Indexes At(const Place& place) const {
    Indexes found;
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      if (std::ranges::any_of(problems_[i].stops, [&](const Place& stop) { return Covers(stop, place); }))
        found.insert(i);
    }
    return found;
  }

  const Problems& problems_;
  Places offered_;
  Places configured_;  // also where no launcher offers them
  std::map<Want, Indexes> known_;
};

Indexes DelayedBy(const NodeRequest& request, Stops& stops) {
  Indexes all;
  for (const LabelName& label : request.node_types) {
    const Indexes& of_label = stops.Of(label, request.provider);
    all.insert(of_label.begin(), of_label.end());
  }
  return all;
}

}  // namespace

void CountDelayedRequests(Problems& problems, const StatusRecords& records) {
  bool is_any_stopped = std::ranges::any_of(problems, [](const Problem& p) { return !p.stops.empty(); });
  if (!is_any_stopped) return;
  Stops stops(problems, records);
  for (const store::StoredRequest* request : WaitingRequests(records.caches.requests)) {
    Indexes delaying = DelayedBy(request->record, stops);
    if (delaying.empty() || HasAllNodes(*request, records.caches.nodes)) continue;
    for (std::size_t index : delaying) {
      Problem& problem = problems[index];
      ++problem.delayed_requests;
      if (!problem.since) problem.since = WaitsSince(request->record);
    }
  }
}

namespace {

// The parts after the first that are shown as tables; the first one already has the problems of images.
constexpr std::size_t kTables = 5;
constexpr std::size_t kMostReasons = 10;

// Columns of the first part.
constexpr std::size_t kSince = 3, kText = 6, kRemedy = 7, kDelayed = 8, kCommand = 9;

Cell CopyOrNull(std::string_view text) { return text.empty() ? Cell() : Cell(std::string(text)); }

Listing ListProblems(const StatusRecords& records) {
  Listing listing{{{.key = "id", .title = {}},
                   {.key = "kind", .title = {}},
                   {.key = "severity", .title = {}},
                   {.key = "since", .title = {}},
                   {.key = "topic", .title = {}},
                   {.key = "key", .title = {}},
                   {.key = "text", .title = {}},
                   {.key = "remedy", .title = {}},
                   {.key = "delayed_requests", .title = {}},
                   {.key = "command", .title = {}}},
                  {}};
  for (const Problem& problem : FindProblems(records)) {
    listing.rows.push_back(
        {CopyOrNull(problem.id()), CopyOrNull(problem.kind), CopyOrNull(ToString(problem.severity)),
         problem.since ? Cell(ToSeconds(*problem.since)) : Cell(), CopyOrNull(problem.subject.topic),
         CopyOrNull(problem.subject.key), CopyOrNull(problem.text), CopyOrNull(problem.remedy),
         Cell(problem.delayed_requests), CopyOrNull(problem.command)});
  }
  return listing;
}

// A cell after `begin`, two characters; further lines are indented.
std::string Lines(std::string_view begin, const Cell& cell, std::optional<std::size_t> width) {
  std::string text = "- ";
  AppendText(text, cell);
  if (width) text = Wrap(text, *width, begin.size());
  return text.replace(0, begin.size(), begin);
}

// "For 00:02:10:05; delays 2 requests; more: nodepool info c1".
Cell MoreOf(const std::vector<Cell>& row, WallTime now) {
  std::vector<std::string> parts;
  if (!row[kSince].is_null())
    parts.push_back("for " + FormatAge(now - FromSeconds(row[kSince].value().as_double())));
  if (std::size_t delayed = row[kDelayed].value().to_number<std::size_t>(); delayed > 0)
    parts.push_back("delays " + Counted(delayed, "request"));
  parts.push_back(fmt::format("more: {}", row[kCommand].text().value_or("")));
  parts.front().front() = static_cast<char>(std::toupper(static_cast<unsigned char>(parts.front().front())));
  return Cell(Join(parts, "; "));
}

// The text of the first part: each problem, below it its remedy, since when it lasts, and how to see more.
std::string ProblemsText(const Listing& part, WallTime now, std::optional<std::size_t> width) {
  if (part.rows.empty()) return "All is well.";
  std::string text = "Check first:";
  for (const std::vector<Cell>& row : part.rows) {
    text += '\n' + Lines("- ", row[kText], width) + '\n' + Lines("  ", row[kRemedy], width) + '\n' +
            Lines("  ", MoreOf(row, now), width);
  }
  return text;
}

std::string PartText(const Listing& part, WallTime now, Colors colors, std::optional<std::size_t> width) {
  return width ? FitTable(part, now, colors, *width, Frame::kBlanks).text
               : ToTable(ForPeople(part), now, colors, Frame::kBlanks);
}

}  // namespace

std::vector<Listing> StatusParts(const StatusRecords& records, WaitingRows waiting, const PageOf& page_of) {
  std::vector<Listing> parts;
  parts.push_back(ListProblems(records));
  parts.push_back(ListDaemons(records.caches.components.all(), page_of));
  parts.push_back(ListProviders(records.configured.drivers, records.caches.components.all(),
                                records.caches.nodes, records.caches.pauses, records.caches.breakers));
  parts.push_back(ListPools(records.configured, records.caches.components.all(), records.caches.nodes,
                            records.caches.breakers));
  parts.push_back(waiting == WaitingRows::kEach
                      ? ListWaiting(records.caches.requests, records.why)
                      : ListWaitingByReason(records.caches.requests, records.why, kMostReasons));
  parts.push_back(ListRunnerSets(RunnerSets(records.caches.runners)));
  parts.push_back(ListImageTroubles(records.caches.images, records.configured, records.now));
  return parts;
}

std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width) {
  std::vector<std::string> texts = {ProblemsText(parts.front(), now, width)};
  for (const Listing& part : std::span(parts).subspan(1, kTables)) {
    if (!part.rows.empty()) texts.push_back(PartText(part, now, colors, width));
  }
  return Join(texts, "\n\n");
}

std::string ToStatusJson(const std::vector<Listing>& parts, WallTime now) {
  std::string json = "{";
  std::string_view separator = "";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fmt::format_to(std::back_inserter(json), "{}\"{}\":{}", std::exchange(separator, ","), kStatusParts[i],
                   ToJson(parts[i], now));
  }
  return json + "}";
}

}  // namespace nodepool::listing
