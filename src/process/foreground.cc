#include "process/foreground.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "process/texts.h"

namespace nodepool::process {
namespace {

constexpr int kCannotBeRun = 127;  // as shells do

// In the child of the fork: calls only functions that are safe there.
[[noreturn]] void Become(const ForegroundCommand& command, char* const* argv, char* const* environment,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotBeRun);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
    ::signal(number, command.ignores_interruption ? SIG_IGN : SIG_DFL);
  }
  ::signal(SIGPIPE, SIG_DFL);
  if (command.output) {
    ::dup2(*command.output, STDOUT_FILENO);
    ::dup2(*command.output, STDERR_FILENO);
    int input = command.input ? *command.input : ::open("/dev/null", O_RDONLY);
    ::dup2(input, STDIN_FILENO);
  }
  ::execvpe(argv[0], argv, environment);
  constexpr char kText[] = ": cannot be run\n";
  [[maybe_unused]] ssize_t named = ::write(STDERR_FILENO, argv[0], std::strlen(argv[0]));
  [[maybe_unused]] ssize_t said = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(kCannotBeRun);
}

[[noreturn]] void RefuseToStart(const std::string& program) {
  throw Error(Verdict::kFail, program + " cannot be started: " + std::strerror(errno));
}

}  // namespace

ForegroundProcess::ForegroundProcess(Loop& loop, const ForegroundCommand& command) : end_(loop.context()) {
  Texts argv(command.argv);
  Texts environment(EntriesOf(command.environment));
  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) Become(command, argv.data(), environment.data(), parent);
  if (pid_ < 0) RefuseToStart(command.argv.front());
  int end = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (end < 0) {
    int reason = errno;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    errno = reason;
    RefuseToStart(command.argv.front());
  }
  ::fcntl(end, F_SETFD, FD_CLOEXEC);
  end_.assign(end);
}

ForegroundProcess::~ForegroundProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Task<int> ForegroundProcess::Wait() {
  if (pid_ <= 0) co_return status_;
  co_await end_.async_wait(boost::asio::posix::descriptor_base::wait_read, boost::asio::use_awaitable);
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  co_return status_;
}

void ForegroundProcess::Send(int signal) {
  if (pid_ > 0) ::kill(pid_, signal);
}

}  // namespace nodepool::process
