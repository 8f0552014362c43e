#include "cli/console.h"

#include "base/error.h"

namespace nodepool::cli {

Task<> UntilInterrupted(Task<> task) {
  try {
    co_await std::move(task);
    co_return;
  } catch (...) {
    if (VerdictOf(std::current_exception()) != Verdict::kCancelled) throw;
  }
  co_await IgnoreCancellation();
}

}  // namespace nodepool::cli
