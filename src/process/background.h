#pragma once

#include <optional>
#include <string>

#include "process/pid_file.h"

namespace nodepool::process {

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
