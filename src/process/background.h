#pragma once

#include <optional>
#include <string>

#include "process/pid_file.h"

namespace nodepool::process {

// How a daemon leaves the terminal that started it (operations.md 2.2). Until Enter() it
// runs where it was started, and nothing here has an effect.
class Background {
 public:
  // Takes the pid file, an absolute path, and goes into the background: directory /, no
  // umask, no core dumps, nothing open but standard error, a session of its own. Returns
  // in the process that goes on. The one that was called waits and ends with status 0 at
  // Started(), or 1 when this one ends before. There are not two of them when the parent
  // is process 1 or standard input is a socket: then somebody else looks after us.
  //
  // To be called while the process has one thread. Errors of PidFile::Claim.
  void Enter(std::string pid_path);

  // The start has succeeded as far as can be known at once. Standard error is closed.
  void Started();

  // Removes the pid file, as the destructor does; for ends without destructors.
  void End() { pid_file_.reset(); }

  bool is_entered() const { return pid_file_.has_value(); }

 private:
  void Fork();

  std::optional<PidFile> pid_file_;
  int waiting_ = -1;  // a pipe to the process that waits
};

}  // namespace nodepool::process
