#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nodepool::daemon {

// Expands shortened long options of `app` and of the subcommand in `arguments` (operations.md 1). Ambiguous
// ones are left to the parser, which refuses them.
void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace nodepool::daemon
