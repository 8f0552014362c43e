#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>

#include "base/log/log_setup.h"

namespace nodepool::log {

// What the handlers write to. They take lines as they are, and end each. Called under the
// lock of the log; may throw spdlog_ex when the system refuses.

// Error(kInvalid) when it cannot be opened.
std::shared_ptr<spdlog::sinks::sink> OpenSink(const Handler& handler);

// Opens a file anew; of other sinks nothing. Throws spdlog_ex.
void ReopenFile(spdlog::sinks::sink& sink);

}  // namespace nodepool::log
