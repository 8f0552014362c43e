#pragma once

#include <string>
#include <vector>

#include "cli/node_claim.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// The options of commands that ask for nodes, as they are on the command line. The labels are declared by the
// command.
struct WishArguments {
  std::vector<std::string> labels;
  NodeWish wish;
  std::string provider;

  NodeWish ToWish() const;
};

void AddWishOptions(CLI::App& command, WishArguments& arguments);

}  // namespace nodepool::cli
