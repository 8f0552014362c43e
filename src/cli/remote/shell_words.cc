#include "cli/remote/shell_words.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"

namespace nodepool::cli {
namespace {

std::string TrackFile(const std::string& token) { return "/tmp/nodepool-exec-" + token; }

}  // namespace

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string ShellLine(const std::vector<std::string>& command) {
  if (command.size() == 1) return "\"${SHELL:-/bin/sh}\" -c " + Quoted(command.front());
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(Quoted(word));
  return Join(words, " ");
}

// The traps keep the shell alive when the signal reaches the whole group, so that it returns the command's
// status and removes the file; what it starts has the default action again.
std::string TrackedLine(const std::string& line, const std::string& folder, const std::string& token) {
  std::string script;
  if (!folder.empty()) script += fmt::format("cd {} || exit 126\n", Quoted(folder));
  script += fmt::format(
      "umask 077; echo $$ >{0}; umask 022\n"
      "trap : HUP INT QUIT TERM\n"
      "{1}\n"
      "status=$?\n"
      "rm -f {0}\n"
      "exit $status",
      TrackFile(token), line);
  return "exec /bin/sh -c " + Quoted(script);
}

std::string SignalLine(int signal, const std::string& token) {
  std::string script = fmt::format(
      "read -r pid <{} || exit\n"
      "group=$(ps -o pgid= -p \"$pid\" 2>/dev/null || cut -d' ' -f5 \"/proc/$pid/stat\")\n"
      "kill -s {} -- \"-${{group##* }}\"",
      TrackFile(token), ::sigabbrev_np(signal));
  return "exec /bin/sh -c " + Quoted(script);
}

}  // namespace nodepool::cli
