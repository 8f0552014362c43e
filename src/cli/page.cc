#include "cli/page.h"

#include "base/text.h"
#include "listing/blocks.h"
#include "listing/display_width.h"
#include "listing/fit.h"

namespace nodepool::cli {
namespace {

std::string FittedText(const listing::Listing& listing, const Page& page) {
  listing::FittedTable table = FitTable(listing, page.now, page.colors, *page.width);
  bool are_blocks = page.is_detailed && !table.is_whole && !listing.rows.empty();
  if (are_blocks) return ToBlocks(listing, page.now, page.colors, *page.width);
  if (table.left_out.empty()) return table.text;
  std::string note = "Left out: " + Join(table.left_out, ", ");
  return table.text + '\n' + listing::CutToWidth(note, *page.width);
}

}  // namespace

Page PageOf(const Context& context, Output output) {
  return {.output = output, .now = context.loop.Now(), .width = context.terminal_width()};
}

std::string TextOf(const listing::Listing& listing, const Page& page) {
  if (page.output == Output::kJson) return ToJson(listing, page.now);
  if (page.width) return FittedText(listing, page);
  return ToTable(listing, page.now, page.colors);
}

}  // namespace nodepool::cli
