#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

#include "cli/invocation.h"

namespace nodepool::cli {

// Parses the arguments (without the program's name) by the rules of operations.md 1: long options may be
// shortened to an unambiguous prefix, the tool's own options come before or after the subcommand. Help and
// version go to `out`, usage errors to `err`; in these cases, and without a subcommand, returns the exit
// status instead.
std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err);

// The index of the command among the arguments; their number if there is none.
std::size_t PlaceOfCommand(std::vector<std::string> arguments);

// `help COMMAND` as `COMMAND --help`, and `help` as `--help`; other arguments as they are.
std::vector<std::string> WithoutHelpCommand(std::vector<std::string> arguments);

// Calls `describe` with the declared command line, with all commands.
void DescribeTool(const std::function<void(const CLI::App&)>& describe);

}  // namespace nodepool::cli
