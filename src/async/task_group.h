#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <memory>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool {

// Owns the tasks spawned into it. Whoever owns the group ends it with Stop()
// before destroying it: no task outlives its owner, nothing is detached.
//
// A task that ends with an error other than kCancelled is logged with its name;
// the others go on. Tasks whose failure matters to somebody report it themselves.
class TaskGroup {
 public:
  using TaskId = std::uint64_t;

  TaskGroup(Loop& loop, log::Logger logger);
  ~TaskGroup();  // requires an empty group
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts `task` later on the loop. After Stop() began the task is dropped unstarted.
  TaskId Spawn(std::string name, log::Ids ids, Task<> task);
  TaskId Spawn(std::string name, Task<> task) { return Spawn(std::move(name), {}, std::move(task)); }

  // Tells one task, or all, to stop: their current await throws kCancelled. To be
  // called while the loop runs, from one of its handlers or tasks.
  void Cancel(TaskId id);
  void CancelAll();

  // Ends when no task is left.
  Task<> Join();
  // No new tasks, cancels all, joins. May be called again.
  Task<> Stop();

  std::size_t size() const { return tasks_.size(); }
  bool stopping() const { return stopping_; }
  Loop& loop() { return loop_; }

 private:
  struct Running {
    TaskId id;
    boost::asio::cancellation_signal signal;
    TaskRegistry::Entry entry;
  };

  struct OnEnd;

  void Finished(std::list<Running>::iterator task, std::exception_ptr error);

  Loop& loop_;
  log::Logger logger_;
  std::list<Running> tasks_;
  WaitList drained_;
  TaskId last_id_ = 0;
  bool stopping_ = false;
};

}  // namespace nodepool
