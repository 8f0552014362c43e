#pragma once

#include "async/loop.h"
#include "process/command.h"

namespace nodepool::process {

// Runs programs as child processes, each below a supervisor (supervisor.h).
class SystemRunner : public Runner {
 public:
  explicit SystemRunner(Loop& loop) : loop_(loop) {}

  Task<Exit> Run(Command command) override;

 private:
  Loop& loop_;
};

}  // namespace nodepool::process
