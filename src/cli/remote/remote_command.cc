#include "cli/remote/remote_command.h"

#include <csignal>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "cli/remote/shell_words.h"

namespace nodepool::cli {
namespace {

using process::ForegroundCommand;
using process::ForegroundProcess;

// How long the command may take to end after a signal, and how long sending one may take.
constexpr Duration kGrace = std::chrono::seconds(10);

int SignalOf(const Console& console) {
  return console.interrupted_by != 0 ? console.interrupted_by : SIGTERM;
}

Task<> AwaitEnd(ForegroundProcess& program, int& status) { status = co_await program.Wait(); }

// A failure shows in that the command does not end.
Task<> SendSignal(Console& console, const SshFiles& files, std::string node, std::string token, int signal) {
  std::vector<std::string> words = files.Words("ssh");
  words.insert(words.end(), {"-T", "-n", std::move(node), SignalLine(signal, token)});
  ForegroundCommand command{.argv = std::move(words), .ignores_interruption = true};
  ForegroundProcess sender(console.loop, command);
  int ignored = 0;
  SteadyTime deadline = console.loop.SteadyNow() + kGrace;
  co_await EndsBy(console.loop, deadline, "passing the signal on", AwaitEnd(sender, ignored));
}

// Whether it ends within the grace.
Task<bool> EndsSoon(Console& console, ForegroundProcess& program, int& status) {
  SteadyTime deadline = console.loop.SteadyNow() + kGrace;
  return EndsBy(console.loop, deadline, "the end of the command", AwaitEnd(program, status));
}

Task<> EndOnNode(Console& console, const SshFiles& files, std::string node, std::string token,
                 ForegroundProcess& ssh, int& status) {
  for (int signal : {SignalOf(console), SIGKILL}) {
    if (!ssh.is_running()) co_return;
    co_await SendSignal(console, files, node, token, signal);
    co_await EndsSoon(console, ssh, status);
  }
}

Task<> EndHere(Console& console, ForegroundProcess& program, int& status) {
  if (!program.is_running()) co_return;
  bool came_from_terminal = console.interrupted_by == SIGINT && console.can_ask;
  if (!came_from_terminal) program.Send(SignalOf(console));
  co_await EndsSoon(console, program, status);
}

}  // namespace

Task<> RunOnNode(Console& console, const SshFiles& files, std::string node, RemoteCommand command,
                 int& status) {
  bool is_login = command.line.empty();
  std::string token = console.random.UuidHex();
  std::vector<std::string> words = files.Words("ssh");
  words.insert(words.end(), {command.has_terminal ? "-t" : "-T", node});
  if (!is_login) words.push_back(TrackedLine(command.line, command.folder, token));
  ForegroundCommand program{
      .argv = std::move(words), .ignores_interruption = !command.has_terminal, .output = command.output};
  ForegroundProcess ssh(console.loop, program);
  auto end = [&] {
    return is_login ? EndHere(console, ssh, status) : EndOnNode(console, files, node, token, ssh, status);
  };
  co_await WithCleanup(AwaitEnd(ssh, status), end);
}

Task<> RunHere(Console& console, ForegroundCommand command, int& status) {
  ForegroundProcess program(console.loop, command);
  auto end = [&] { return EndHere(console, program, status); };
  co_await WithCleanup(AwaitEnd(program, status), end);
}

}  // namespace nodepool::cli
