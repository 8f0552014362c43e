#pragma once

#include <string>

#include "async/event.h"
#include "async/task_group.h"
#include "builder/context.h"

namespace nodepool::builder {

// What the builder's loops have in common: they look around when something changed or
// when they said, and start jobs, which run beside each other and bear a cancellation
// at any await.
class Worker {
 public:
  Worker(Context& context, std::string name);
  virtual ~Worker();  // call Stop() first

  void Start();
  // Starts no more jobs; those that run go on.
  Task<> StopLooking() { return loop_.Stop(); }
  // Ends when no job is left.
  Task<> Join() { return jobs_.Join(); }
  // Jobs are told to stop. Ends when the last has.
  Task<> Stop();
  void Wake() { wake_.Set(); }
  // Everything that is done under locks ends.
  void SessionLost() { jobs_.CancelAll(); }

 protected:
  // Looks around and starts jobs; returns when to look again at the latest. Called only
  // while the image cache is complete and ZooKeeper is there.
  virtual SteadyTime Consider() = 0;

  Context& context_;
  log::Logger logger_;
  TaskGroup jobs_;

 private:
  Task<> Run();
  SteadyTime Look();

  std::string name_;
  Event wake_;
  TaskGroup loop_;
};

}  // namespace nodepool::builder
