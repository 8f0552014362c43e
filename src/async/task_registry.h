#pragma once

#include <boost/intrusive/list.hpp>
#include <list>
#include <string>

#include "async/await_note.h"
#include "base/clock.h"
#include "base/log/logging.h"

namespace nodepool {

// One running task, as the stack dump shows it: with us a task is the thing that
// hangs, not a thread.
struct TaskInfo {
  std::string name;
  log::Ids ids;
  SteadyTime started;
  // What it awaits, the outer before the inner; empty while it runs and for what is not noted.
  boost::intrusive::list<AwaitNote, boost::intrusive::constant_time_size<false>> awaits = {};
};

// Every spawned task while it lives, oldest first.
class TaskRegistry {
 public:
  using Entry = std::list<TaskInfo>::iterator;

  Entry Add(TaskInfo info) { return tasks_.insert(tasks_.end(), std::move(info)); }
  void Remove(Entry entry) { tasks_.erase(entry); }
  const std::list<TaskInfo>& tasks() const { return tasks_; }

 private:
  std::list<TaskInfo> tasks_;
};

}  // namespace nodepool
