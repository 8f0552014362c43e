#pragma once

#include <list>
#include <string>

#include "base/clock.h"
#include "base/logging.h"

namespace nodepool {

// One running task, as the stack dump shows it: with us a task is the thing that
// hangs, not a thread.
struct TaskInfo {
  std::string name;
  log::Ids ids;
  SteadyTime started;
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
