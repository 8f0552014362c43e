#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

// The threads of this process, by the ids that the kernel gives them. Linux only.
namespace nodepool::debug {

std::vector<int> Threads();  // sorted

std::string NameOf(int thread);

// Processor time since the thread began; nullopt when it has ended.
std::optional<Duration> CpuTimeOf(int thread);

}  // namespace nodepool::debug
