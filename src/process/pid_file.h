#pragma once

#include <sys/types.h>

#include <chrono>
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
  // second; Error(kConflict) that names its process after `timeout`. Error(kFail) at once when the
  // system refuses for another reason.
  void Claim(std::chrono::seconds timeout = std::chrono::seconds(10));

  // Removes it if this process has created it.
  void Release();

 private:
  bool TryClaim();

  std::string path_;
  pid_t owner_ = 0;  // 0: not ours
};

}  // namespace nodepool::process
