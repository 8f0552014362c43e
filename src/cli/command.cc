#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "listing/blocks.h"
#include "listing/display_width.h"
#include "listing/fit.h"
#include "operate/nodes.h"

namespace nodepool::cli {

namespace {

constexpr std::size_t kPriorityDigits = 3;

bool IsDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void Print(Context& context, const listing::Listing& listing, Output output) {
  context.out << TextOf(listing, PageOf(context, output)) << '\n';
}

std::string RefuseBadReason(const std::string& text) {
  if (!IsValidUtf8(text)) return "it is not UTF-8";
  return text.size() > kMaxOperatorReason ? fmt::format("it is longer than {} bytes", kMaxOperatorReason)
                                          : "";
}

Task<> UnlockNode(std::optional<store::LockedNode>& node) {
  if (node) co_await node->Unlock();
}

std::optional<RequestId> ParseRequestName(std::string_view text) {
  std::size_t dash = std::min(text.find('-'), text.size());
  std::optional<NodeId> number = operate::ParseNodeId(text.substr(std::min(dash + 1, text.size())));
  bool is_request = dash == kPriorityDigits && IsDigits(text.substr(0, dash)) && number;
  return is_request ? std::optional(RequestId(fmt::format("{}-{}", text.substr(0, dash), *number)))
                    : std::nullopt;
}

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

namespace {

Task<bool> IsConfirmed(Context& context, const listing::Listing& rows, std::string question) {
  context.out << TextOf(rows, PageOf(context, Output::kTable)) << '\n' << question << std::flush;
  std::string answer = co_await context.read_line();
  co_return answer == "y" || answer == "Y";
}

}  // namespace

Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns) {
  if (is_confirmed || rows.rows.size() <= 1) co_return true;
  if (!context.can_ask) {
    context.logger.Error("{} {} match; --yes is missing to {} them all", rows.rows.size(), nouns, verb);
    co_return false;
  }
  std::string question = fmt::format("Really {} these {} {}? [N/y] ", verb, rows.rows.size(), nouns);
  bool is_meant = co_await IsConfirmed(context, rows, std::move(question));
  if (!is_meant) context.logger.Error("Nothing was changed");
  co_return is_meant;
}

}  // namespace nodepool::cli
