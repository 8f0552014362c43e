#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/blocking_pool.h"
#include "cli/console.h"
#include "driver/driver.h"
#include "driver/loading/load_config.h"
#include "driver/operator_tools.h"
#include "listing/listing.h"
#include "model/component.h"
#include "store/cache/caches.h"
#include "store/store.h"

namespace nodepool::cli {

// Where a launcher is asked. Without `web`, which old versions and the Python implementation do not announce,
// at the port of our configuration.
struct LauncherAddress {
  std::string hostname;
  std::optional<WebServer> web;
};

// What a command works with that reads records. Commands are coroutines that return the exit status: 0 if
// they did what was asked, else 1, after the reason as an error (D-66); unexpected faults are thrown.
// An interruption (Ctrl-C) cancels the command's task.
struct Context : Console {
  store::Store& store;
  // The configuration that was in force when the command began.
  std::shared_ptr<const driver::LoadedConfig> config;
  // The tools of a provider of the configuration, for this command only. Stop them before they are destroyed.
  std::function<std::unique_ptr<driver::OperatorTools>(const ProviderName&)> make_tools = {};
  // Sends GET `target` to the launcher's web server and returns the answer; throws on any failure, including
  // no answer within a second.
  std::function<Task<std::string>(LauncherAddress launcher, std::string target)> ask_launcher = {};
  // Takes large objects that are no longer needed when the process is about to end: freeing them piece by
  // piece takes a sixth of the time of a long list. Not set: they are freed.
  std::function<void(std::shared_ptr<void>)> abandon = {};
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

// How a list is printed.
struct Page {
  Output output = Output::kTable;
  WallTime now{};  // ages are computed for this time
  listing::Colors colors = listing::Colors::kNone;
  std::optional<std::size_t> width;  // tables are fitted to it; nothing: they are not fitted
  bool is_detailed = false;          // rows that do not fit become blocks, which have all columns
};

// The terminal's width, if `context.out` is a terminal, and the current time.
Page PageOf(const Context& context, Output output);

// The listing as text, without a line break at its end. Below a fitted table, a line names the omitted
// columns (operations.md 5.3).
std::string TextOf(const listing::Listing& listing, const Page& page);

// Whether a command may change what the rows show: one alone, with `is_confirmed` (the option --yes), or
// after `y` at a terminal that has shown them. False: after a message. `verb` and `nouns` name the change and
// the rows: "delete", "nodes".
Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns);

}  // namespace nodepool::cli
