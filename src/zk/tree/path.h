#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zk/types.h"

namespace nodepool::zk {

// Whether a server accepts `path` as the name of a znode: absolute, no trailing
// slash, no empty or relative component, valid UTF-8 without control characters
// and without what ZooKeeper excludes besides (private use, U+FFF0 and above).
bool IsValidPath(std::string_view path);

// Whether a server would take `path` (absolute, no empty, "." or ".." component, no
// control characters, UTF-8). Throws Error(kInvalid) naming the path and the fault.
// Only a sequential create may end in a slash.
void CheckPath(std::string_view path, bool may_end_in_slash = false);

// The same for every part of a transaction.
void CheckPaths(const std::vector<Op>& ops);

// `chroot` as it is put in front of paths: "" for none or "/". Throws Error(kInvalid).
std::string NormalizedChroot(std::string_view chroot);

// A path from the server without the chroot; nullopt when it is outside.
std::optional<std::string_view> WithoutChroot(std::string_view path, std::string_view chroot);

}  // namespace nodepool::zk
