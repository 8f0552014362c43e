#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace nodepool::process {

// The process that has locked the open file by flock(2); nullopt where the system does not show it, e.g. for
// a process of another container.
std::optional<pid_t> LockHolder(int file);

// The same in a text as that of /proc/locks.
std::optional<pid_t> LockHolderIn(std::string_view locks, dev_t device, ino_t inode);

}  // namespace nodepool::process
