#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"

namespace nodepool::cli {

// The program runs it before it comes to this parser.
void RegisterStandalone(CLI::App& app, Invocation&) {
  app.add_subcommand("standalone", "run everything in one process, see nodepool standalone --help");
}

}  // namespace nodepool::cli
