#pragma once

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace nodepool::builder {

// Throws Error(kFail) that names the path and says what the error number `code` means.
[[noreturn]] inline void FailAt(const std::string& path, int code) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(code)));
}

// Removes a directory with all that is in it. Follows no symbolic link and enters no mount: Error(kFail) that
// names the mount, with everything on it left alone. A missing directory is no error. Blocks.
void RemoveTree(const std::string& path);

// What disk-image-create leaves behind if it cannot clean up because it was killed or the machine went down
// (builder.md 20.6, D-41). Its temporary directories are named in the build's log, since it runs with -x.

// The directories named at the beginning of a log, in order.
std::vector<std::string> TemporaryDirectories(std::string_view log);

// Whether the build of that log may have left something: it failed or was killed, and no process has the log
// open. Blocks.
bool IsAbandonedLog(const std::string& path);

// The real path of such a directory; nullopt unless it is directly in one of `folders`, so that a log cannot
// name anything else, by symbolic links either. Blocks.
std::optional<std::string> RealPlace(const std::string& directory, const std::set<std::string>& folders);

// Detaches loop devices whose files are in the directory, unmounts what is mounted there, and removes it. The
// path has to be real. A missing directory is no error; a symbolic link is not followed or removed. Throws
// Error(kFail). Blocks. Returns whether there was anything.
bool RemoveTemporaryDirectory(const std::string& path);

}  // namespace nodepool::builder
