#pragma once

#include <cstddef>

#include "async/blocking_pool.h"
#include "async/loop.h"

namespace nodepool::daemon {

// What glibc's allocator would keep for good after a cloud has sent huge lists: each thread has an arena of
// its own, and memory goes back to the system only from an arena's end.

// Lets the threads share a few arenas. Call it before there is a second thread.
void LimitArenas();

// Bytes of resident memory that no object uses, approximately. Blocks for a moment.
std::size_t UnusedMemory();

// Gives unused memory back, once in `period` when there is much of it. Ends when it is cancelled.
Task<> ReturnUnusedMemory(Loop& loop, BlockingPool& pool, Duration period = std::chrono::minutes(1));

}  // namespace nodepool::daemon
