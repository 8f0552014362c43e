#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "async/deadline.h"
#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/log/logging.h"

namespace nodepool {

// An executor of the loop that knows the task it runs handlers for. It behaves as `Inner`; two are
// equal when their inner executors are.
template <class Inner>
class TaskExecutor {
 public:
  TaskExecutor(Inner inner, TaskInfo* task) noexcept : inner_(std::move(inner)), task_(task) {}

  // Lives longer than any coroutine of the task.
  TaskInfo* task() const { return task_; }

  template <class Function>
  void execute(Function&& function) const {
    inner_.execute(std::forward<Function>(function));
  }

  template <class Property>
    requires boost::asio::can_query<const Inner&, Property>::value
  decltype(auto) query(const Property& property) const
      noexcept(boost::asio::is_nothrow_query<const Inner&, Property>::value) {
    return boost::asio::query(inner_, property);
  }

  template <class Property>
    requires boost::asio::can_require<const Inner&, Property>::value
  auto require(const Property& property) const
      noexcept(boost::asio::is_nothrow_require<const Inner&, Property>::value) {
    using Required = std::decay_t<typename boost::asio::require_result<const Inner&, Property>::type>;
    return TaskExecutor<Required>(boost::asio::require(inner_, property), task_);
  }

  friend bool operator==(const TaskExecutor& a, const TaskExecutor& b) noexcept {
    return a.inner_ == b.inner_;
  }

 private:
  Inner inner_;
  TaskInfo* task_;
};

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

// The steps in which a daemon stops, one after the other. Each ends by the deadline; what fails or takes
// longer is logged and left behind.
class StopSteps {
 public:
  StopSteps(Loop& loop, log::Logger logger, SteadyTime deadline)
      : loop_(loop), logger_(std::move(logger)), deadline_(deadline) {}

  // `what` names the step for the log, as in "ending statistics".
  Task<> Do(std::string what, Task<> step) { return DoBy(deadline_, std::move(what), std::move(step)); }
  // The same with an earlier deadline.
  Task<> DoBy(SteadyTime deadline, std::string what, Task<> step) {
    Outcome<> ended = co_await Attempt(WithDeadline(loop_, deadline, what, std::move(step)));
    if (!ended) logger_.Warning("Stopping: {}", ended.error().message());
  }

 private:
  Loop& loop_;
  log::Logger logger_;
  SteadyTime deadline_;
};

// The loops that a daemon consists of, as a list: they start in its order and stop in the opposite one.
class Loops {
 public:
  // `loop` has Start() and Task<> Stop(), and SessionLost() if it works under locks; it outlives this list.
  // `name` is for the log, as in "ending NAME".
  template <class Loop>
  void Add(std::string name, Loop& loop) {
    Entry entry{std::move(name), [&loop] { loop.Start(); }, [&loop] { return loop.Stop(); }, [] {}};
    if constexpr (requires { loop.SessionLost(); }) entry.drop = [&loop] { loop.SessionLost(); };
    entries_.push_back(std::move(entry));
  }

  void Start() {
    for (const Entry& entry : entries_) entry.start();
  }
  // All drop the work that they do under locks, which are gone with the session.
  void SessionLost() {
    for (const Entry& entry : entries_) entry.drop();
  }
  Task<> Stop(StopSteps& steps) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      co_await steps.Do("ending " + entry->name, entry->stop());
    }
  }

 private:
  struct Entry {
    std::string name;
    std::function<void()> start;
    std::function<Task<>()> stop;
    std::function<void()> drop;
  };

  std::vector<Entry> entries_;
};

}  // namespace nodepool
