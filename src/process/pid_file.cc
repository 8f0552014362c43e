#include "process/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "process/lock_holder.h"

namespace nodepool::process {
namespace {

// A longer file does not hold a number, and is no pid file that a crash has left incomplete.
constexpr std::size_t kMaxLength = 64;

std::string FirstLine(int file) {
  char text[kMaxLength];
  ssize_t size = ::pread(file, text, sizeof(text), 0);
  std::string_view line(text, size < 0 ? 0 : static_cast<std::size_t>(size));
  line = line.substr(0, line.find('\n'));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return std::string(line);
}

// The process has ended but has not been waited for, which process 1 may never do.
bool IsZombie(pid_t pid) {
  int file = ::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::string line = FirstLine(file);
  ::close(file);
  std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line.substr(name_end + 2, 1) == "Z";
}

bool IsNumber(const std::string& line) {
  return !line.empty() && line.find_first_not_of("0123456789") == std::string::npos;
}

// Also true for a number that no process can have.
bool IsDeadProcess(const std::string& line) {
  if (!IsNumber(line)) return false;
  pid_t pid = 0;
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
  if (error != std::errc() || pid == 0) return true;
  return ::kill(pid, 0) != 0 ? errno == ESRCH : IsZombie(pid);
}

// Why a file that remains is in the way.
std::string WhyTaken(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return fmt::format("cannot be read ({}); use -p FILE", std::strerror(errno));
  std::string line = FirstLine(file);
  ::close(file);
  if (IsNumber(line)) return fmt::format("says that process {} is running", Excerpt(line));
  return "names no process; remove it if it is not needed, or use -p FILE";
}

// Any user who may read the file can lock it, so the wait has an end. False: the system cannot lock it.
bool LockWithin(std::chrono::seconds timeout, int file, const std::string& path) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= deadline) {
      std::optional<pid_t> holder = LockHolder(file);
      std::string who = holder ? fmt::format("process {}", *holder) : "another process";
      throw Error(Verdict::kConflict,
                  fmt::format("the pid file {} is locked by {}; end it or use -p FILE", path, who));
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

std::optional<PidFile::State> PidFile::StateNow() const {
  struct stat named {};
  if (::stat(path_.c_str(), &named) != 0) return std::nullopt;
  return State{named.st_dev, named.st_ino, named.st_mtim.tv_sec, named.st_mtim.tv_nsec};
}

void PidFile::RemoveStale(std::chrono::seconds timeout) const {
  Remove(timeout, [](const std::string& line, const struct stat&) { return IsDeadProcess(line); });
}

void PidFile::RemoveRubbish(const std::optional<State>& since) const {
  Remove(std::chrono::seconds(0), [&](const std::string& line, const struct stat& file) {
    bool is_rubbish =
        !IsNumber(line) && S_ISREG(file.st_mode) && file.st_size <= static_cast<off_t>(kMaxLength);
    return IsDeadProcess(line) || (is_rubbish && since && since == StateNow());
  });
}

void PidFile::Remove(std::chrono::seconds timeout, const Judge& is_left_behind) const {
  int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  ScopeExit close([file] { ::close(file); });
  // Of several concurrent starts one removes the file, and none removes a file that another has
  // created in its place.
  struct stat opened {
  }, named{};
  bool is_same = LockWithin(timeout, file, path_) && ::fstat(file, &opened) == 0 &&
                 ::stat(path_.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
                 opened.st_ino == named.st_ino;
  if (is_same && is_left_behind(FirstLine(file), opened)) ::unlink(path_.c_str());
}

bool PidFile::TryClaim() {
  int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0 && errno == EEXIST) return false;
  bool is_good = file >= 0;
  int reason = errno;
  if (is_good) {
    owner_ = ::getpid();
    std::string text = fmt::format("{}\n", owner_);
    is_good = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    reason = errno;
    ::close(file);
  }
  if (is_good) return true;
  Release();
  throw Error(Verdict::kFail,
              fmt::format("cannot create the pid file {}: {}; use -p FILE, or -f to stay in the foreground",
                          path_, std::strerror(reason)));
}

void PidFile::Claim(std::chrono::seconds timeout) {
  std::optional<State> since = StateNow();
  for (auto waited = std::chrono::seconds(0); !TryClaim(); ++waited) {
    if (waited >= timeout) {
      // A start under way would have written its number by now.
      RemoveRubbish(since);
      if (TryClaim()) return;
      throw Error(Verdict::kConflict, fmt::format("the pid file {} {}", path_, WhyTaken(path_)));
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void PidFile::Release() {
  if (owner_ == 0 || owner_ != ::getpid()) return;
  owner_ = 0;
  ::unlink(path_.c_str());
}

}  // namespace nodepool::process
