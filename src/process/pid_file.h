#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>

namespace nodepool::process {

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

}  // namespace nodepool::process
