#pragma once

namespace nodepool::cli {

// `nodepool help [COMMAND]`, which the parser of the arguments replaces by --help (cli/arguments.h).
inline constexpr const char* kHelpCommand = "help";

}  // namespace nodepool::cli
