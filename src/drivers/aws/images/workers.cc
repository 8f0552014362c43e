#include "drivers/aws/images/workers.h"

#include "async/attempt.h"
#include "async/cleanup.h"

namespace nodepool::drivers::aws {

namespace {

Task<> RunWorker(TaskGroup& workers, Task<> work, Outcome<>& first) {
  Outcome<> done = co_await Attempt(std::move(work));
  if (done || !first) co_return;
  first = std::move(done);
  workers.CancelAll();
}

}  // namespace

Task<> RunWorkers(Loop& loop, log::Logger logger, std::string name, int count, std::function<Task<>()> make) {
  Outcome<> first;
  TaskGroup workers(loop, std::move(logger));
  for (int i = 0; i < count; ++i) workers.Spawn(name, RunWorker(workers, make(), first));
  auto stop = [&workers] { return workers.Stop(); };
  co_await WithCleanup(workers.Join(), stop);
  if (!first) first.error().Rethrow();
}

}  // namespace nodepool::drivers::aws
