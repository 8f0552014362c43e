#include "process/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <cstring>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/text.h"
#include "process/supervisor.h"

namespace nodepool::process {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Reads one word at the front of `rest` and removes it.
class WordReader {
 public:
  explicit WordReader(std::string_view& rest) : rest_(rest) {}

  std::string Read() {
    while (!rest_.empty() && kBlanks.find(rest_.front()) == std::string_view::npos) {
      char c = Take();
      if (c == '\'') {
        ReadSingleQuoted();
      } else if (c == '"') {
        ReadDoubleQuoted();
      } else if (c == '\\') {
        word_ += Need();
      } else {
        word_ += c;
      }
    }
    return std::move(word_);
  }

 private:
  char Take() {
    char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  char Need() {
    if (rest_.empty()) {
      throw Error(Verdict::kInvalid, "a quote is not closed, or a backslash ends the command line");
    }
    return Take();
  }
  void ReadSingleQuoted() {
    for (char c = Need(); c != '\''; c = Need()) word_ += c;
  }
  // A backslash is literal unless it is before a quote or another backslash.
  void ReadDoubleQuoted() {
    for (char c = Need(); c != '"'; c = Need()) {
      if (c != '\\') {
        word_ += c;
        continue;
      }
      char next = Need();
      if (next != '"' && next != '\\') word_ += c;
      word_ += next;
    }
  }

  std::string_view& rest_;
  std::string word_;
};

}  // namespace

std::vector<std::string> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    words.push_back(WordReader(line).Read());
  }
}

Environment OwnEnvironment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

namespace {

namespace asio = boost::asio;

// In addition to the grace, for the supervisor's own work.
constexpr Duration kSupervisorLimit = std::chrono::seconds(20);
constexpr int kLogMode = 0644;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }
  void Close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  int get() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) Refuse("pipe");
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read;
  Descriptor write;
};

bool IsProgram(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

// Where Debian has a program that is not there.
std::string PackageHint(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kPackages[] = {
      {"disk-image-create", "python3-diskimage-builder"}, {"qemu-img", "qemu-utils"}};
  const auto* found =
      std::ranges::find(kPackages, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kPackages) ? "" : fmt::format("; on Debian: apt install {}", found->second);
}

std::string FindProgram(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  auto path = environment.find("PATH");
  std::string places = path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
  for (const std::string& place : Split(places, ':')) {
    std::string candidate = (place.empty() ? "." : place) + "/" + name;
    if (IsProgram(candidate)) return candidate;
  }
  throw Error(Verdict::kInvalid, fmt::format("there is no program {} in {}{}", Excerpt(name), Excerpt(places),
                                             PackageHint(name)));
}

// A running program below its supervisor.
class Child {
 public:
  Child(Loop& loop, const Command& command, int output)
      : loop_(loop), name_(command.argv.front()), report_(loop.context()) {
    std::string path = FindProgram(command.argv.front(), command.environment);
    Texts argv(command.argv);
    Texts environment(EntriesOf(command.environment));
    Pipe control, report;
    SupervisorPlan plan{path.c_str(),
                        argv.data(),
                        environment.data(),
                        control.read.get(),
                        report.write.get(),
                        output,
                        std::chrono::duration_cast<std::chrono::milliseconds>(command.grace).count(),
                        command.has_own_mounts};
    supervisor_ = ::fork();
    if (supervisor_ == 0) Supervise(plan);
    if (supervisor_ < 0) Refuse("fork");
    control_ = std::move(control.write);
    report_.assign(report.read.Release());
  }
  // A program that was not waited for is ended by the supervisor, whose control pipe closes.
  ~Child() {
    control_.Close();
    if (supervisor_ > 0) ::waitpid(supervisor_, nullptr, WNOHANG);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Ends when no process is left.
  Task<> WaitEnd() {
    while (true) {
      char* place = reinterpret_cast<char*>(&said_) + size_;
      boost::system::error_code error;
      std::size_t size = co_await report_.async_read_some(asio::buffer(place, sizeof(said_) - size_),
                                                          asio::redirect_error(asio::use_awaitable, error));
      if (error == asio::error::operation_aborted) throw Error(Verdict::kCancelled, "cancelled");
      if (error) break;
      size_ += size;
      if (size_ < sizeof(said_)) continue;
      // A program that could not be run is reported as ended as well.
      if (!first_) first_ = said_;
      size_ = 0;
    }
    ::waitpid(std::exchange(supervisor_, -1), nullptr, 0);
  }

  // Ends the program if it still runs.
  Task<> End(Duration grace) {
    if (supervisor_ < 0) co_return;
    [[maybe_unused]] ssize_t written = ::write(control_.get(), &kEnd, 1);
    SteadyTime deadline = loop_.SteadyNow() + grace + kSupervisorLimit;
    Outcome<bool> waited = co_await Attempt(EndsBy(loop_, deadline, "the end of " + name_, WaitEnd()));
    if (supervisor_ < 0) co_return;
    ::kill(supervisor_, SIGKILL);
    ::waitpid(std::exchange(supervisor_, -1), nullptr, 0);
  }

  // The exit status of the program.
  int Code() const {
    if (!first_) return -SIGKILL;  // the supervisor was killed, or gave up
    if (first_->kind == Report::kNotRun) {
      throw Error(Verdict::kInvalid,
                  fmt::format("{} cannot be run: {}", name_, std::strerror(first_->value)));
    }
    int status = first_->value;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  Loop& loop_;
  std::string name_;
  pid_t supervisor_ = -1;
  Descriptor control_;
  asio::posix::stream_descriptor report_;
  Report said_{};
  std::size_t size_ = 0;
  std::optional<Report> first_;
};

// Retains the last bytes read from a pipe.
class Tail {
 public:
  Tail(Loop& loop, Descriptor read) : read_(loop.context(), read.Release()) {}

  Task<> Follow() {
    std::array<char, 16 * 1024> buffer;
    while (true) {
      boost::system::error_code error;
      std::size_t size = co_await read_.async_read_some(asio::buffer(buffer),
                                                        asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      text_.append(buffer.data(), size);
      if (text_.size() > 2 * kMaxRetainedOutput) text_.erase(0, text_.size() - kMaxRetainedOutput);
    }
  }
  std::string Take() {
    if (text_.size() > kMaxRetainedOutput) text_.erase(0, text_.size() - kMaxRetainedOutput);
    return std::move(text_);
  }

 private:
  asio::posix::stream_descriptor read_;
  std::string text_;
};

Task<Exit> Finish(Loop& loop, Command command, int output, Descriptor to_close) {
  Child child(loop, command, output);
  to_close.Close();
  SteadyTime deadline = loop.SteadyNow() + command.timeout;
  Task<bool> wait = EndsBy(loop, deadline, command.argv.front(), child.WaitEnd());
  auto end = [&] { return child.End(command.grace); };
  bool has_ended = co_await WithCleanup(std::move(wait), end);
  Exit exit;
  exit.is_timed_out = !has_ended;
  exit.code = child.Code();
  co_return exit;
}

Task<Exit> RunLogged(Loop& loop, Command command) {
  Descriptor log(::open(command.log_path->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kLogMode));
  if (log.get() < 0) Refuse(*command.log_path);
  int number = log.get();
  Task<Exit> run = Finish(loop, std::move(command), number, std::move(log));
  Exit exit = co_await std::move(run);
  co_return exit;
}

Task<Exit> FinishAndRead(Loop& loop, Command command, int output, Descriptor to_close, TaskGroup& reading) {
  Task<Exit> run = Finish(loop, std::move(command), output, std::move(to_close));
  Exit exit = co_await std::move(run);
  co_await reading.Join();  // no writer is left, so the pipe has an end
  co_return exit;
}

Task<Exit> RunRetained(Loop& loop, Command command) {
  Pipe pipe;
  Tail tail(loop, std::move(pipe.read));
  TaskGroup reading(loop, log::Logger("nodepool.process"));
  reading.Spawn("output of " + command.argv.front(), tail.Follow());
  int output = pipe.write.get();
  Task<Exit> run = FinishAndRead(loop, std::move(command), output, std::move(pipe.write), reading);
  auto stop = [&reading] { return reading.Stop(); };
  Exit exit = co_await WithCleanup(std::move(run), stop);
  exit.output = tail.Take();
  co_return exit;
}

}  // namespace

Task<Exit> SystemRunner::Run(Command command) {
  if (command.argv.empty()) throw Error(Verdict::kInvalid, "there is no program to run");
  bool is_logged = command.log_path.has_value();
  Task<Exit> run = is_logged ? RunLogged(loop_, std::move(command)) : RunRetained(loop_, std::move(command));
  Exit exit = co_await std::move(run);
  co_return exit;
}

}  // namespace nodepool::process
