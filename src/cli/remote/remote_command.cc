#include "cli/remote/remote_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"

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
Task<> SendSignal(Console& console, const net::SshFiles& files, std::string node, std::string token,
                  int signal) {
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

Task<> EndOnNode(Console& console, const net::SshFiles& files, std::string node, std::string token,
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

Task<> RunOnNode(Console& console, const net::SshFiles& files, std::string node, RemoteCommand command,
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
      "(umask 077; echo $$ >{0})\n"
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

namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

}  // namespace

LabelledOutput::LabelledOutput(Loop& loop, std::string label, std::ostream& out)
    : label_(std::move(label)), out_(out), read_(loop.context()) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Verdict::kFail, std::string("No pipe: ") + std::strerror(errno));
  read_.assign(ends[0]);
  writing_end_ = ends[1];
}

LabelledOutput::~LabelledOutput() { CloseWritingEnd(); }

void LabelledOutput::CloseWritingEnd() {
  if (writing_end_ >= 0) ::close(std::exchange(writing_end_, -1));
}

Task<> LabelledOutput::Follow() {
  std::array<char, 16 * 1024> buffer;
  std::string pending;
  while (true) {
    boost::system::error_code error;
    std::size_t size = co_await read_.async_read_some(
        boost::asio::buffer(buffer), boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error == boost::asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) break;
    pending.append(buffer.data(), size);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Print(std::string_view(pending).substr(begin, end - begin));
    }
    pending.erase(0, begin);
    if (pending.size() > kLongestLine) Print(std::exchange(pending, ""));
  }
  if (!pending.empty()) Print(pending);
}

void LabelledOutput::Print(std::string_view line) { out_ << label_ << line << std::endl; }

}  // namespace nodepool::cli
