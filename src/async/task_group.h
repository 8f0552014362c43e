#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <memory>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool {

// Owns the tasks spawned into it. The owner of the group ends it with Stop() before destroying it:
// no task outlives its owner, nothing is detached.
//
// A task that ends with an error other than kCancelled is logged with its name; the others
// continue. A task whose failure matters to its owner reports it itself.
class TaskGroup {
 public:
  using TaskId = std::uint64_t;

  TaskGroup(Loop& loop, log::Logger logger);
  ~TaskGroup();  // requires an empty group
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts `task` later on the loop, also if it is cancelled meanwhile: it runs until it waits, and that wait
  // is cancelled. So what the caller has noted for a task, the task can always undo (ScopeExit). After Stop()
  // began the task is dropped unstarted.
  TaskId Spawn(std::string name, log::Ids ids, Task<> task);
  TaskId Spawn(std::string name, Task<> task) { return Spawn(std::move(name), {}, std::move(task)); }

  // Cancel one task, or all: their current await throws kCancelled. To be called while the loop
  // runs, from one of its handlers or tasks.
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
    bool has_begun = false;
    std::shared_ptr<void> cancelled_early = nullptr;  // set if it was cancelled before it began
  };
  using TaskEntry = std::list<Running>::iterator;

  struct OnEnd;

  static Task<> Begin(TaskEntry running, boost::asio::any_io_executor executor, Task<> task);
  static void Cancel(Running& task);
  void Finished(TaskEntry task, std::exception_ptr error);

  Loop& loop_;
  log::Logger logger_;
  std::list<Running> tasks_;
  WaitList drained_;
  TaskId last_id_ = 0;
  bool stopping_ = false;
};

}  // namespace nodepool
