#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nodepool::process {

// The process that has locked the open file by flock(2); nullopt where the system does not show it, e.g. for
// a process of another container.
std::optional<pid_t> LockHolder(int file);

// The same in a text as that of /proc/locks.
std::optional<pid_t> LockHolderIn(std::string_view locks, dev_t device, ino_t inode);

// The file that names the one running process of its kind: the process that created it has the lock
// (operations.md 2.2). Meant for the start of main, so it blocks.
class PidFile {
 public:
  explicit PidFile(std::string path) : path_(std::move(path)) {}
  ~PidFile() { Release(); }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

  // Removes the file when its first line is the number of a process that does not run. Error(kConflict) when
  // another process has the file locked for `timeout`.
  void RemoveStale(std::chrono::seconds timeout = std::chrono::seconds(10)) const;

  // Creates the file, with the number of this process in it. While one exists, it tries again every
  // second. After `timeout`, a short file without a number that nobody has locked or written to meanwhile is
  // what a crash has left, and is replaced; else Error(kConflict) that names its process. Error(kFail) at
  // once when the system refuses for another reason.
  void Claim(std::chrono::seconds timeout = std::chrono::seconds(10));

  // Removes it if this process has created it.
  void Release();

 private:
  // By which a file that was replaced, or written to, differs.
  struct State {
    dev_t device;
    ino_t inode;
    std::time_t written_s;
    long written_ns;
    bool operator==(const State&) const = default;
  };
  using Judge = std::function<bool(const std::string& first_line, const struct stat& file)>;

  bool TryClaim();
  std::optional<State> StateNow() const;
  void RemoveRubbish(const std::optional<State>& since) const;
  void Remove(std::chrono::seconds timeout, const Judge& is_left_behind) const;

  std::string path_;
  pid_t owner_ = 0;  // 0: not ours
};

// Moves a daemon away from the terminal that started it (operations.md 2.2). Before Enter() the
// other functions have no effect.
class Background {
 public:
  // Takes the pid file, an absolute path, and goes into the background: directory /, umask 022, no
  // core dumps, all descriptors closed but standard error, a session of its own. Returns in the
  // process that continues. The original process waits and exits with status 0 at Started(), or 1
  // when the new process ends before that. There is no second process when the parent is process 1
  // or standard input is a socket: then a service manager supervises this one.
  // To be called while the process has one thread. Errors of PidFile::Claim.
  void Enter(std::string pid_path);

  // The start has succeeded as far as is known at this moment. Closes standard error.
  void Started();

  // Removes the pid file, as the destructor does; for exits without destructors.
  void End() { pid_file_.reset(); }

  bool is_entered() const { return pid_file_.has_value(); }

 private:
  void Fork();

  std::optional<PidFile> pid_file_;
  int waiting_ = -1;  // a pipe to the process that waits
};

}  // namespace nodepool::process
