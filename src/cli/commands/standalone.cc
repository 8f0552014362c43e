#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"

namespace nodepool::cli {

// The program handles this command before it uses this parser.
void RegisterStandalone(CLI::App& app, Invocation&) {
  app.add_subcommand("standalone", "run everything in one process, see nodepool standalone --help");
}

}  // namespace nodepool::cli
