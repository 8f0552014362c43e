#include "async/task_group.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cassert>

#include "base/error.h"

namespace nodepool {

namespace asio = boost::asio;

// Called when a task ended. It offers the cancellation slot as a member, without naming an
// executor: only then does Asio deliver a cancellation at once instead of posting it to a task that
// may have ended by the time it runs.
struct TaskGroup::OnEnd {
  using cancellation_slot_type = asio::cancellation_slot;
  TaskGroup* group;
  TaskEntry task;

  cancellation_slot_type get_cancellation_slot() const noexcept { return task->signal.slot(); }
  void operator()(std::exception_ptr error) { group->Finished(task, error); }
};

TaskGroup::TaskGroup(Loop& loop, log::Logger logger) : loop_(loop), logger_(std::move(logger)) {}

TaskGroup::~TaskGroup() { assert(tasks_.empty() && "a task group is stopped before it is destroyed"); }

TaskGroup::TaskId TaskGroup::Spawn(std::string name, log::Ids ids, Task<> task) {
  TaskId id = ++last_id_;
  if (stopping_) return id;
  auto entry = loop_.tasks().Add(TaskInfo{std::move(name), std::move(ids), loop_.SteadyNow()});
  auto running = tasks_.emplace(tasks_.end());
  running->id = id;
  running->entry = entry;
  asio::any_io_executor executor = TaskExecutor(loop_.context().get_executor(), &*entry);
  asio::co_spawn(executor, Begin(running, executor, std::move(task)), OnEnd{this, running});
  return id;
}

// Asio would not even begin a task that was cancelled before. So its cancellation follows its beginning.
Task<> TaskGroup::Begin(TaskEntry running, asio::any_io_executor executor, Task<> task) {
  running->has_begun = true;
  if (running->cancelled_early) {
    std::weak_ptr<void> is_alive = running->cancelled_early;
    asio::post(executor, [is_alive, running] {
      if (!is_alive.expired()) Cancel(*running);
    });
  }
  co_await std::move(task);
}

void TaskGroup::Finished(TaskEntry task, std::exception_ptr error) {
  if (error && VerdictOf(error) != Verdict::kCancelled) {
    logger_.About(task->entry->ids).Error("{} failed: {}", task->entry->name, MessageOf(error));
  }
  loop_.tasks().Remove(task->entry);
  tasks_.erase(task);
  if (tasks_.empty()) drained_.NotifyAll();
}

void TaskGroup::Cancel(TaskId id) {
  for (Running& task : tasks_) {
    if (task.id == id) return Cancel(task);
  }
}

void TaskGroup::Cancel(Running& task) {
  if (task.has_begun) {
    task.signal.emit(asio::cancellation_type::terminal);
  } else if (!task.cancelled_early) {
    task.cancelled_early = std::make_shared<char>();
  }
}

void TaskGroup::CancelAll() {
  for (Running& task : tasks_) Cancel(task);
}

Task<> TaskGroup::Join() {
  while (!tasks_.empty()) co_await drained_.Wait();
}

Task<> TaskGroup::Stop() {
  stopping_ = true;
  CancelAll();
  co_await Join();
}

}  // namespace nodepool
