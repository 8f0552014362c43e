#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"
#include "base/random.h"

namespace nodepool::cli {

// What every command works with, also one that needs neither a configuration nor ZooKeeper.
struct Console {
  Loop& loop;
  Random& random;
  std::ostream& out;  // results; error messages go to the log
  log::Logger logger{"nodepool.cmd.nodepoolcmd"};
  std::string user = {};  // who runs the command: "alice@host"
  bool can_ask = false;   // standard input is a terminal with an operator to answer
  // The next line of standard input; empty when there is none.
  std::function<Task<std::string>()> read_line = {};
  bool is_terminal = false;  // `out` is one
  // The current width of the terminal in columns; nothing: `out` is not a terminal, or its width is unknown.
  std::function<std::optional<std::size_t>()> terminal_width = [] { return std::nullopt; };
  // Standard error, if it is a terminal, for a line that is rewritten.
  std::ostream* progress = nullptr;
  int interrupted_by = 0;    // the signal that has cancelled the command's task
  bool wants_color = false;  // the terminal supports colors, and they are not disabled
};

// Awaits a task that may end by an interruption: does not throw kCancelled.
Task<> UntilInterrupted(Task<> task);

// "1 node", "2 nodes".
inline std::string Counted(std::size_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

}  // namespace nodepool::cli
