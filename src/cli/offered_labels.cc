#include "cli/offered_labels.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/text.h"

namespace nodepool::cli {
namespace {

// `names` are those that launchers serve.
template <class Name>
std::string FaultOf(std::string_view what, const Name& wanted, const std::set<Name>& names) {
  if (names.contains(wanted)) return "";
  std::vector<std::string> known;
  for (const Name& name : names) known.push_back(name.value);
  std::optional<std::string> nearest = NearestSpelling(wanted.value, known);
  return fmt::format("no launcher {} {}{}", what, Excerpt(wanted.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

Task<std::string> FaultOfWish(Context& context, NodeWish wish) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  if (pools.empty()) co_return "";
  std::set<LabelName> labels;
  std::set<ProviderName> providers;
  for (const Component& pool : pools) {
    labels.insert(pool.supported_labels.begin(), pool.supported_labels.end());
    providers.insert(pool.provider_name);
  }
  std::string fault;
  if (!wish.provider.empty()) fault = FaultOf("serves provider", wish.provider, providers);
  for (const LabelName& label : wish.labels) {
    if (fault.empty()) fault = FaultOf("offers label", label, labels);
  }
  co_return fault;
}

}  // namespace nodepool::cli
