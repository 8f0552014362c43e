#include "process/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace nodepool::process {
namespace {

// Besides what the caller's umask forbids. What a build puts into an image must be readable by all users of
// the image.
constexpr mode_t kUmask = 022;

Error SystemError(const char* what) {
  return {Verdict::kFail, fmt::format("cannot go into the background: {}: {}", what, std::strerror(errno))};
}

bool IsLookedAfter() {
  struct stat input {};
  bool is_socket = ::fstat(STDIN_FILENO, &input) == 0 && S_ISSOCK(input.st_mode);
  return ::getppid() == 1 || is_socket;
}

void PointToNothing(int descriptor) {
  int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  ::dup2(nothing, descriptor);
  if (nothing != descriptor) ::close(nothing);
}

// Exits this process as the other one has begun.
[[noreturn]] void Follow(pid_t child, int pipe) {
  ::waitpid(child, nullptr, 0);
  char word = 0;
  ssize_t size = 0;
  do {
    size = ::read(pipe, &word, 1);
  } while (size < 0 && errno == EINTR);
  ::_exit(size == 1 ? 0 : 1);
}

}  // namespace

void Background::Fork() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw SystemError("pipe");
  pid_t child = ::fork();
  if (child < 0) throw SystemError("fork");
  if (child > 0) {
    ::close(ends[1]);
    Follow(child, ends[0]);
  }
  ::setsid();
  // A process that is not a session leader does not acquire a terminal by accident.
  pid_t grandchild = ::fork();
  if (grandchild < 0) throw SystemError("fork");
  if (grandchild > 0) ::_exit(0);
  constexpr int kFirstFree = STDERR_FILENO + 1;
  if (ends[1] != kFirstFree) ::dup3(ends[1], kFirstFree, O_CLOEXEC);
  waiting_ = kFirstFree;
}

void Background::Enter(std::string pid_path) {
  pid_file_.emplace(std::move(pid_path));
  pid_file_->RemoveStale();
  // Claim it while the waiting process can still report a failure.
  pid_file_->Claim();
  pid_file_->Release();
  if (!IsLookedAfter()) Fork();
  if (::chdir("/") != 0) throw SystemError("chdir");
  ::umask(kUmask | ::umask(kUmask));
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  unsigned first = static_cast<unsigned>(waiting_ < 0 ? STDERR_FILENO + 1 : waiting_ + 1);
  ::close_range(first, ~0U, 0);
  PointToNothing(STDIN_FILENO);
  PointToNothing(STDOUT_FILENO);
  pid_file_->Claim();
}

void Background::Started() {
  if (!is_entered()) return;
  PointToNothing(STDERR_FILENO);
  if (waiting_ < 0) return;
  [[maybe_unused]] ssize_t ignored = ::write(waiting_, "", 1);
  ::close(waiting_);
  waiting_ = -1;
}

}  // namespace nodepool::process
