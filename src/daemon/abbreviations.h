#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class App;
}

namespace nodepool::daemon {

// Writes out shortened long options, of `app` and of the subcommand that stands in
// `arguments` (operations.md 1). What is ambiguous stays for the parser to complain about.
void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace nodepool::daemon
