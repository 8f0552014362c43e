#include "process/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"

namespace nodepool::process {

std::optional<pid_t> LockHolder(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  std::string text{std::istreambuf_iterator<char>(locks), {}};
  return LockHolderIn(text, status.st_dev, status.st_ino);
}

// Lines such as "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; "->" after the number is one that waits.
std::optional<pid_t> LockHolderIn(std::string_view locks, dev_t device, ino_t inode) {
  std::string place = fmt::format("{:02x}:{:02x}:{}", major(device), minor(device), inode);
  for (const std::string& line : Split(locks, '\n')) {
    std::istringstream words(line);
    std::string number, kind, mode, access, where;
    pid_t process = 0;
    bool is_lock = static_cast<bool>(words >> number >> kind >> mode >> access >> process >> where);
    if (is_lock && kind == "FLOCK" && where == place && process > 0) return process;
  }
  return std::nullopt;
}

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
