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

// What a command works with. Commands are coroutines that return the exit status: 0
// when they ran to their end, also when they only report that something was not
// found (D-66); unexpected faults are thrown. An interruption (Ctrl-C) cancels the
// command's task.
struct Context {
  Loop& loop;
  store::Store& store;
  std::ostream& out;  // results; complaints go to the log
  // In force when the command began.
  std::shared_ptr<const driver::LoadedConfig> config;
  log::Logger logger{"nodepool.cmd.nodepoolcmd"};
  // A provider of the configuration for this command alone; not started. To be stopped
  // before it is destroyed.
  std::function<std::unique_ptr<driver::Provider>(const ProviderName&)> make_provider;
  // The answer of the web server of the launcher on this host to GET `target`; any
  // failure, as when it takes longer than a second, is thrown.
  std::function<Task<std::string>(std::string hostname, std::string target)> ask_launcher;
  std::string user;      // who runs the command: "alice@host"
  bool can_ask = false;  // a person is there to answer at standard input
  // The next line of standard input; empty when there is none.
  std::function<Task<std::string>()> read_line;
  // Takes what is large and of no use any more, where the process ends anyway: to free it piece by
  // piece takes a sixth of the time of a long list. Not set: it is freed.
  std::function<void(std::shared_ptr<void>)> abandon;
  bool is_terminal = false;  // `out` is one
  // How many columns the terminal has now; nothing: `out` is none, or it does not say.
  std::function<std::optional<std::size_t>()> terminal_width = [] { return std::nullopt; };
  bool wants_color = false;  // it shows colors, and nobody has forbidden them
};

enum class Output { kTable, kJson };

// Prints it, in a terminal fitted to its width.
void Print(Context& context, const listing::Listing& listing, Output output);

// How long a command waits for a node's lock before it gives up (operations.md 5.5).
inline constexpr Duration kLockTimeout = std::chrono::seconds(5);

// Gives the lock up, where it was got.
Task<> UnlockNode(std::optional<store::LockedNode>& node);

// A node id is ten digits, of which leading zeros may be left out; anything else is no name of a node.
std::optional<NodeId> ParseNodeId(std::string_view text);
// As "200-0000000003", where the second number may be shorter.
std::optional<RequestId> ParseRequestName(std::string_view text);

}  // namespace nodepool::cli
