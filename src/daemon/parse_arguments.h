#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nodepool::daemon {

// The status after a usage error (operations.md 1).
inline constexpr int kUsageError = 2;

// A command line that cannot be used. The message is the one line to report, with the names of the program
// and of the command: "nodepool list: there is no option --sate; did you mean --state?".
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses the arguments, in their order and without the program's name, by the rules of operations.md 1.
// Throws UsageError, and CLI::Success where help or version is wanted.
void ParseArguments(CLI::App& app, std::vector<std::string> arguments);

// The line for what is wrong with the arguments.
UsageError UsageErrorIn(const CLI::App& app, const std::vector<std::string>& arguments,
                        const std::string& fault);

}  // namespace nodepool::daemon
