#include "cli/command.h"

#include <algorithm>
#include <ostream>

#include "cli/page.h"

namespace nodepool::cli {

void Print(Context& context, const listing::Listing& listing, Output output) {
  context.out << TextOf(listing, PageOf(context, output)) << '\n';
}

Task<> UnlockNode(std::optional<store::LockedNode>& node) {
  if (node) co_await node->Unlock();
}

bool IsNodeId(std::string_view text) {
  return text.size() == 10 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace nodepool::cli
