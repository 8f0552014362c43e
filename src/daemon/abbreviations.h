#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nodepool::daemon {

// Expands shortened long options of `app` and of the subcommand in `arguments` (operations.md 1), but no
// ambiguous ones. Options of `app` may be before and after the subcommand; one of the subcommand is
// preferred.
void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments);

// What is wrong with the first option in expanded `arguments` that neither `app` nor the subcommand has, for
// people; nullopt: they have all of them.
std::optional<std::string> FaultOfOptions(const CLI::App& app, const std::vector<std::string>& arguments);

// The place of the first argument that is neither an option of `app` nor its value: where the
// subcommand is, or is missing. The number of arguments when there is none, and when `app` does
// not know an option before it.
std::size_t PlaceOfCommand(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace nodepool::daemon
