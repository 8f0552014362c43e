#include "debug/task_dump.h"

#include <fmt/format.h>

namespace nodepool::debug {

std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now) {
  std::string text = fmt::format("{} tasks, oldest first", tasks.tasks().size());
  for (const TaskInfo& task : tasks.tasks()) {
    double age = std::chrono::duration<double>(now - task.started).count();
    text += fmt::format("\nTask: {}{} age: {:.1f} s", log::Annotated({log::Level::kDebug, "", task.ids, ""}),
                        task.name, age);
  }
  return text;
}

}  // namespace nodepool::debug
