#include "process/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "process/command.h"

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

namespace {

// The supervisor's descriptors; all above are closed.
constexpr int kControl = 3;
constexpr int kReport = 4;
constexpr int kOutput = 5;
constexpr int kFirstFree = 6;

constexpr int kNotFound = 127;  // as shells do
// Processes that outlive the program are asked to end, and killed after this time.
constexpr std::int64_t kLeftoverGraceMs = 2000;
// Killing goes on until no process is left; one that cannot be killed is given up after this time.
constexpr std::int64_t kKillStepMs = 20;
constexpr std::int64_t kGiveUpMs = 10'000;

std::int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void SetAllSignals(void (*handler)(int)) {
  for (int number = 1; number < NSIG; ++number) signal(number, handler);
}

void SetMask(int how, const sigset_t& mask) { sigprocmask(how, &mask, nullptr); }

sigset_t ChildSignal() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  return mask;
}

void ArrangeDescriptors(const SupervisorPlan& plan) {
  // First move both out of each other's numbers.
  int control = fcntl(plan.control_fd, F_DUPFD, 16);
  int report = fcntl(plan.report_fd, F_DUPFD, 16);
  int output = fcntl(plan.output_fd, F_DUPFD, 16);
  dup2(control, kControl);
  dup2(report, kReport);
  dup2(output, kOutput);
  fcntl(kReport, F_SETFD, FD_CLOEXEC);
  syscall(SYS_close_range, static_cast<unsigned>(kFirstFree), ~0u, 0u);
  int null = open("/dev/null", O_RDWR);
  for (int standard = 0; standard <= 2; ++standard) dup2(null, standard);
  if (null > 2) close(null);
}

void SendReport(Report::Kind kind, int value) {
  Report report{kind, value};
  [[maybe_unused]] ssize_t written = write(kReport, &report, sizeof(report));
}

[[noreturn]] void BecomeProgram(const SupervisorPlan& plan, pid_t supervisor) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != supervisor) _exit(kNotFound);
  SetAllSignals(SIG_DFL);
  SetMask(SIG_UNBLOCK, ChildSignal());
  dup2(kOutput, STDOUT_FILENO);
  dup2(kOutput, STDERR_FILENO);
  close(kOutput);
  close(kControl);
  execve(plan.path, plan.argv, plan.environment);
  SendReport(Report::kNotRun, errno);
  _exit(kNotFound);
}

// The parent of a process according to its file in /proc; 0: unknown.
pid_t ParentOf(const char* pid_name) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%.32s/stat", pid_name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512];
  ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = 0;
  // "<pid> (<name>) <state> <parent> ...", and the name may hold anything.
  const char* after_name = std::strrchr(text, ')');
  if (after_name == nullptr || std::strlen(after_name) < 5) return 0;
  pid_t parent = 0;
  for (const char* digit = after_name + 4; *digit >= '0' && *digit <= '9'; ++digit) {
    parent = parent * 10 + (*digit - '0');
  }
  return parent;
}

pid_t NumberOf(const char* name) {
  pid_t number = 0;
  for (; *name != 0; ++name) {
    if (*name < '0' || *name > '9') return 0;
    number = number * 10 + (*name - '0');
  }
  return number;
}

// To every child: the program, and the orphans that this process has adopted. Their own children
// are adopted when they end.
void SignalChildren(int number) {
  pid_t self = getpid();
  int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(dirent64) char buffer[8192];
  while (true) {
    long size = syscall(SYS_getdents64, proc, buffer, sizeof(buffer));
    if (size <= 0) break;
    for (long place = 0; place < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + place);
      place += entry->d_reclen;
      pid_t pid = NumberOf(entry->d_name);
      if (pid > 0 && ParentOf(entry->d_name) == self) kill(pid, number);
    }
  }
  close(proc);
}

class Supervision {
 public:
  explicit Supervision(const SupervisorPlan& plan) : plan_(plan) {}

  [[noreturn]] void Run() {
    setsid();
    SetAllSignals(SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigset_t mask;
    sigemptyset(&mask);
    SetMask(SIG_SETMASK, mask);
    SetMask(SIG_BLOCK, ChildSignal());
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "supervisor");
    ArrangeDescriptors(plan_);
    // Mounts of the system propagate to here; none from here reaches the system.
    if (plan_.has_own_mounts && unshare(CLONE_NEWNS) == 0) {
      mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr);
    }
    sigset_t children = ChildSignal();
    int child_ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t self = getpid();
    program_ = fork();
    if (program_ == 0) BecomeProgram(plan_, self);
    if (program_ < 0) {
      SendReport(Report::kNotRun, errno);
      _exit(1);
    }
    close(kOutput);
    while (true) {
      if (!Reap()) _exit(0);
      WaitForNews(child_ended);
      Act();
    }
  }

 private:
  enum class Phase { kRunning, kEnding, kKilling };

  // Collects the processes that ended; returns whether any is left.
  bool Reap() {
    while (true) {
      int status = 0;
      pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0) return errno != ECHILD;
      if (pid == program_) {
        SendReport(Report::kExited, status);
        program_ = 0;
        SignalChildren(SIGTERM);
        EndWithin(kLeftoverGraceMs);
      }
    }
  }

  void WaitForNews(int child_ended) {
    pollfd news[] = {{child_ended, POLLIN, 0}, {is_told_ ? -1 : kControl, POLLIN, 0}};
    std::int64_t timeout = -1;
    if (phase_ != Phase::kRunning) timeout = deadline_ > NowMs() ? deadline_ - NowMs() : 0;
    poll(news, 2, static_cast<int>(timeout));
    signalfd_siginfo ignored;
    while (read(child_ended, &ignored, sizeof(ignored)) > 0) {
    }
    // Either the byte kEnd, or the death of the process that would send it.
    if (news[1].revents == 0) return;
    is_told_ = true;
    if (program_ <= 0) return;
    kill(program_, SIGTERM);
    EndWithin(plan_.grace_ms);
  }

  void EndWithin(std::int64_t grace) {
    if (phase_ == Phase::kKilling) return;
    phase_ = Phase::kEnding;
    deadline_ = NowMs() + grace;
  }

  void Act() {
    if (phase_ == Phase::kRunning || NowMs() < deadline_) return;
    if (phase_ == Phase::kEnding) {
      phase_ = Phase::kKilling;
      give_up_ = NowMs() + kGiveUpMs;
    }
    if (NowMs() > give_up_) _exit(1);
    SignalChildren(SIGKILL);
    deadline_ = NowMs() + kKillStepMs;
  }

  const SupervisorPlan& plan_;
  pid_t program_ = 0;
  Phase phase_ = Phase::kRunning;
  std::int64_t deadline_ = 0;
  std::int64_t give_up_ = 0;
  bool is_told_ = false;
};

}  // namespace

void Supervise(const SupervisorPlan& plan) { Supervision(plan).Run(); }

}  // namespace nodepool::process
