#include "async/await_note.h"

#include <boost/asio/io_context.hpp>

#include "async/task_executor.h"

namespace nodepool {

AwaitNote::AwaitNote(const boost::asio::any_io_executor& executor, std::string_view what,
                     std::string_view about, std::optional<SteadyTime> until)
    : what_(what), about_(about), until_(until) {
  using Executor = TaskExecutor<boost::asio::io_context::executor_type>;
  if (const auto* own = executor.target<Executor>()) own->task()->awaits.push_back(*this);
}

}  // namespace nodepool
