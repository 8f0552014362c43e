#pragma once

#include <string>
#include <vector>

namespace nodepool::cli {

// One word of a shell's command line, whatever is in `text`.
std::string Quoted(const std::string& text);

// A command as the user gave it: one word is a line for the login shell, several are a program and its
// arguments.
std::string ShellLine(const std::vector<std::string>& command);

// The line for the node's shell that runs `line` in `folder` (empty: where the login begins) and ends with
// its status. A file named after `token` says meanwhile which processes SignalLine() is for.
std::string TrackedLine(const std::string& line, const std::string& folder, const std::string& token);

// The line that sends the signal to everything that the tracked line has started. `signal` is 2, 15 and so
// on.
std::string SignalLine(int signal, const std::string& token);

}  // namespace nodepool::cli
