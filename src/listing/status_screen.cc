#include "listing/status_screen.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/text.h"
#include "listing/daemon_listing.h"
#include "listing/find_problems.h"
#include "listing/fit.h"
#include "listing/image_health.h"
#include "listing/pool_listing.h"
#include "listing/provider_listing.h"
#include "listing/runner_listing.h"
#include "listing/text_columns.h"
#include "listing/wrap.h"

namespace nodepool::listing {
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
