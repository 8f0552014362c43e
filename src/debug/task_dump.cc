#include "debug/task_dump.h"

#include <fmt/format.h>

namespace nodepool::debug {

namespace {

// ", awaits deletion (at most 3.5 s)", and for the inner ones "; a timer (at most 1.0 s)".
std::string Describe(const AwaitNote& note, bool is_first, SteadyTime now) {
  std::string text = fmt::format("{}{}", is_first ? ", awaits " : "; ", note.what());
  if (!note.about().empty()) text += fmt::format(" {}", note.about());
  if (note.until() && *note.until() < SteadyTime::max())
    text += fmt::format(" (at most {:.1f} s)", std::chrono::duration<double>(*note.until() - now).count());
  return text;
}

}  // namespace

std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now) {
  std::string text = fmt::format("{} tasks, oldest first", tasks.tasks().size());
  for (const TaskInfo& task : tasks.tasks()) {
    double age = std::chrono::duration<double>(now - task.started).count();
    text += fmt::format("\nTask: {}{} age: {:.1f} s", log::Annotated({log::Level::kDebug, "", task.ids, ""}),
                        task.name, age);
    for (const AwaitNote& note : task.awaits) text += Describe(note, &note == &task.awaits.front(), now);
  }
  return text;
}

}  // namespace nodepool::debug
