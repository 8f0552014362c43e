#pragma once

#include <string>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "builder/context.h"

namespace nodepool::builder {

// What the builder's loops have in common: they decide again when something changed or at
// a time that they chose, and start jobs, which run concurrently and may be cancelled at any
// await.
class Worker {
 public:
  Worker(Context& context, std::string name);
  virtual ~Worker();  // call Stop() first

  void Start();
  // Starts no more jobs; running ones continue.
  Task<> StopDeciding() { return loop_tasks_.Stop(); }
  // Ends when no job is left.
  Task<> Join() { return jobs_.Join(); }
  // Cancels the jobs. Ends when the last has ended.
  Task<> Stop();
  void Wake() { loop_.Wake(); }
  // Cancels all jobs, since their locks are lost.
  void SessionLost() { jobs_.CancelAll(); }

 protected:
  // Decides and starts jobs; returns when to decide again at the latest. Called only while
  // the image cache is complete and ZooKeeper is connected.
  virtual SteadyTime Consider() = 0;

  Context& context_;
  log::Logger logger_;
  TaskGroup jobs_;

 private:
  SteadyTime ConsiderIfConnected();

  std::string name_;
  WakeLoop loop_;
  TaskGroup loop_tasks_;
};

}  // namespace nodepool::builder
