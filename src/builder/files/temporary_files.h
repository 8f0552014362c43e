#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::builder {

// What disk-image-create leaves behind when it cannot tidy up: it was killed, or the
// machine went down (builder.md 20.6, D-41). Its directories for temporary files are
// named in the build's log, since it runs with -x.

// The directories that the beginning of a log names, in order.
std::vector<std::string> TemporaryDirectories(std::string_view log);

// Whether a build of that log may have left something: it did not end well, and nobody
// has the log open any more. Blocks.
bool IsAbandonedLog(const std::string& path);

// Detaches loop devices whose files are in the directory, takes down what is mounted
// there, and removes it. What is gone already is fine; a symbolic link is left alone.
// Throws Error(kFail). Blocks. Returns whether there was anything.
bool RemoveTemporaryDirectory(const std::string& path);

}  // namespace nodepool::builder
