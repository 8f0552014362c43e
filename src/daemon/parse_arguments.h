#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace nodepool::daemon {

// Replaces "~" or "~user" at the beginning of a path by that user's home directory; for "~" that is HOME in
// the environment, else the system's entry. Other paths are returned unchanged.
std::string ExpandHome(const std::string& path);

inline constexpr const char* kDefaultConfig = "/etc/nodepool/nodepool.yaml";
// The environment variable that names the configuration where no -c does.
inline constexpr const char* kConfigVariable = "NODEPOOL_CONFIG";

// Error(kInvalid) that says how to name another file, when there is none at `path`.
void RequireConfig(const std::string& path);

}  // namespace nodepool::daemon

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 has named it
class FormatterBase;
class Option;
}  // namespace CLI

namespace nodepool::daemon {

// How --help shows a command line: in 80 columns, with defaults and choices behind the help.
std::shared_ptr<CLI::FormatterBase> HelpFormat();

// How help and manual pages name a positional argument: as its type, where it has one. No positional has the
// name of an option of its command: newer releases of CLI11 refuse that.
std::string NameOfPositional(const CLI::Option& option);

}  // namespace nodepool::daemon

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
