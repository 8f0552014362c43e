#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "async/event.h"

namespace nodepool {

// A number that grows, and the tasks that wait until it has reached theirs. Each of them is woken
// once, when it has: a step costs only as much as the tasks it wakes, however many wait for later
// ones.
class Progress {
 public:
  // `name`, a literal, says in a task dump what the waiting tasks wait for.
  explicit Progress(const char* name) : name_(name) {}

  // Ends when `number` is reached, at once when it has been.
  Task<> WaitFor(std::uint64_t number);
  // All numbers up to `number` are reached. It never decreases.
  void Reach(std::uint64_t number);

 private:
  const char* name_;
  std::uint64_t reached_ = 0;
  std::map<std::uint64_t, WaitList> waiting_;  // by the number that they wait for
};

}  // namespace nodepool
