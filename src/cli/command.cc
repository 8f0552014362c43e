#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "cli/page.h"
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

}  // namespace nodepool::cli
