#include "cli/command.h"

#include <algorithm>
#include <ostream>

#include "store/node_cache.h"
#include "store/request_cache.h"

namespace nodepool::cli {
namespace {

// Follows the tree just long enough to have read it: one pass of pipelined reads,
// where reading record by record would take two round trips each.
template <class Cache>
Task<> Fill(Cache& cache) {
  cache.Start();
  std::exception_ptr error;
  try {
    co_await cache.WaitSynced();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) co_await IgnoreCancellation();
  co_await cache.Stop();
  if (error) std::rethrow_exception(error);
}

}  // namespace

Task<std::map<NodeId, store::StoredNode>> ReadNodes(Context& context) {
  store::NodeCache cache(context.loop, context.store.client());
  co_await Fill(cache);
  co_return cache.all();
}

Task<std::map<RequestId, store::StoredRequest>> ReadRequests(Context& context) {
  store::RequestCache cache(context.loop, context.store.client());
  co_await Fill(cache);
  co_return cache.all();
}

void Print(Context& context, const listing::Listing& listing, Output output) {
  if (output == Output::kJson) {
    context.out << ToJson(listing) << '\n';
  } else {
    context.out << ToTable(listing, context.loop.Now()) << '\n';
  }
}

bool IsNodeId(std::string_view text) {
  return text.size() == 10 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace nodepool::cli
