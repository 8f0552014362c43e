#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

#include "cli/invocation.h"

namespace nodepool::cli {

// Reads the arguments (without the program's name) by the rules of operations.md 1:
// long options may be shortened to an unambiguous prefix, the tool's own options
// come before or after the subcommand. Help and version go to `out`, usage errors to `err`;
// then, and without a subcommand, the exit status is returned instead.
std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err);

// The place of the command among the arguments; their number when there is none.
std::size_t PlaceOfCommand(std::vector<std::string> arguments);

// Shows `describe` the command line as it is declared, with all commands.
void DescribeTool(const std::function<void(const CLI::App&)>& describe);

}  // namespace nodepool::cli
