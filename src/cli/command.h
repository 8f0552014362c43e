#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/loading/load_config.h"
#include "driver/provider.h"
#include "listing/listing.h"
#include "store/store.h"

namespace nodepool::cli {

// What a command works with. Commands are coroutines that return the exit status: 0 if they completed, also
// if they only report that something was not found (D-66); unexpected faults are thrown. An interruption
// (Ctrl-C) cancels the command's task.
struct Context {
  Loop& loop;
  store::Store& store;
  std::ostream& out;  // results; error messages go to the log
  // The configuration that was in force when the command began.
  std::shared_ptr<const driver::LoadedConfig> config;
  log::Logger logger{"nodepool.cmd.nodepoolcmd"};
  // Creates a provider of the configuration for this command only; it is not started. Stop it before it is
  // destroyed.
  std::function<std::unique_ptr<driver::Provider>(const ProviderName&)> make_provider;
  // Sends GET `target` to the web server of the launcher on this host and returns the answer; throws on any
  // failure, including no answer within a second.
  std::function<Task<std::string>(std::string hostname, std::string target)> ask_launcher;
  std::string user;      // who runs the command: "alice@host"
  bool can_ask = false;  // standard input is a terminal with an operator to answer
  // The next line of standard input; empty when there is none.
  std::function<Task<std::string>()> read_line;
  // Takes large objects that are no longer needed when the process is about to end: freeing them piece by
  // piece takes a sixth of the time of a long list. Not set: they are freed.
  std::function<void(std::shared_ptr<void>)> abandon;
  bool is_terminal = false;  // `out` is one
  // The current width of the terminal in columns; nothing: `out` is not a terminal, or its width is unknown.
  std::function<std::optional<std::size_t>()> terminal_width = [] { return std::nullopt; };
  // Standard error, if it is a terminal, for a line that is rewritten.
  std::ostream* progress = nullptr;
  int interrupted_by = 0;    // the signal that has cancelled the command's task
  bool wants_color = false;  // the terminal supports colors, and they are not disabled
};

enum class Output { kTable, kJson };

// Prints the listing, fitted to the width of a terminal.
void Print(Context& context, const listing::Listing& listing, Output output);

// How long a command waits for a node's lock before it gives up (operations.md 5.5).
inline constexpr Duration kLockTimeout = std::chrono::seconds(5);

// Why the text cannot be a reason in a record; empty if it can.
std::string RefuseBadReason(const std::string& text);

// Releases the lock if it was acquired.
Task<> UnlockNode(std::optional<store::LockedNode>& node);

// As "200-0000000003", where the second number may be shorter.
std::optional<RequestId> ParseRequestName(std::string_view text);

}  // namespace nodepool::cli
