#include "listing/status_screen.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/text.h"
#include "listing/attention.h"
#include "listing/daemon_listing.h"
#include "listing/fit.h"
#include "listing/image_health.h"
#include "listing/pool_listing.h"
#include "listing/provider_listing.h"
#include "listing/wrap.h"

namespace nodepool::listing {
namespace {

// The parts after the first that are shown as tables; the first one already has the problems of images.
constexpr std::size_t kTables = 4;

Listing Troubles(const StatusRecords& records) {
  Listing listing{{{.key = "text", .title = "Check first", .fit = {Importance::kAlways, 24}}}, {}};
  for (std::string& sentence : FindTroubles(records)) listing.rows.push_back({Cell(std::move(sentence))});
  return listing;
}

// The text of the first part.
std::string TroublesText(const Listing& part, std::optional<std::size_t> width) {
  if (part.rows.empty()) return "All is well.";
  std::string text = "Check first:";
  for (const std::vector<Cell>& row : part.rows) {
    std::string line = "- ";
    AppendText(line, row[0]);
    text += '\n' + (width ? Wrap(line, *width, 2) : line);
  }
  return text;
}

std::string PartText(const Listing& part, WallTime now, Colors colors, std::optional<std::size_t> width) {
  return width ? FitTable(part, now, colors, *width, Frame::kBlanks).text
               : ToTable(part, now, colors, Frame::kBlanks);
}

}  // namespace

std::vector<Listing> StatusParts(const StatusRecords& records, std::size_t most) {
  std::vector<Listing> parts;
  parts.push_back(Troubles(records));
  parts.push_back(ListDaemons(records.components, records.page_of));
  parts.push_back(
      ListProviders(records.configured.drivers, records.components, records.nodes, records.pauses));
  parts.push_back(ListPools(records.configured, records.components, records.nodes));
  parts.push_back(ListWaiting(records.requests, records.why, most));
  parts.push_back(ListImageTroubles(records.images, records.configured, records.now));
  return parts;
}

std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width) {
  std::vector<std::string> texts = {TroublesText(parts.front(), width)};
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
