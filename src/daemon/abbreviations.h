#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::daemon {

// Writes out shortened long options, of `app` and of the subcommand that is in
// `arguments` (operations.md 1). What is ambiguous is left to the parser, which refuses it.
void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace nodepool::daemon
