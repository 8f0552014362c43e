#include "cli/commands/wish_arguments.h"

#include <CLI/CLI.hpp>

namespace nodepool::cli {

NodeWish WishArguments::ToWish() const {
  NodeWish result = wish;
  for (const std::string& label : labels) result.labels.emplace_back(label);
  result.provider = ProviderName(provider);
  return result;
}

void AddWishOptions(CLI::App& command, WishArguments& arguments) {
  NodeWish& wish = arguments.wish;
  command.add_option("--priority", wish.priority, "0 to 999; smaller is served first")
      ->check(CLI::Range(0, 999))
      ->default_str("200")
      ->type_name("N");
  command.add_option("--tenant", wish.tenant, "count the nodes against this tenant's limits")
      ->type_name("NAME");
  command.add_option("--requestor", wish.requestor, "who asks, for statistics")
      ->default_str("nodepool")
      ->type_name("NAME");
  command.add_option("--provider", arguments.provider, "prefer this provider")->type_name("PROVIDER");
}

}  // namespace nodepool::cli
