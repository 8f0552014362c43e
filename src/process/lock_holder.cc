#include "process/lock_holder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/text.h"

namespace nodepool::process {

std::optional<pid_t> LockHolder(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  std::string text{std::istreambuf_iterator<char>(locks), {}};
  return LockHolderIn(text, status.st_dev, status.st_ino);
}

// Lines such as "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; "->" after the number is one that waits.
std::optional<pid_t> LockHolderIn(std::string_view locks, dev_t device, ino_t inode) {
  std::string place = fmt::format("{:02x}:{:02x}:{}", major(device), minor(device), inode);
  for (const std::string& line : Split(locks, '\n')) {
    std::istringstream words(line);
    std::string number, kind, mode, access, where;
    pid_t process = 0;
    bool is_lock = static_cast<bool>(words >> number >> kind >> mode >> access >> process >> where);
    if (is_lock && kind == "FLOCK" && where == place && process > 0) return process;
  }
  return std::nullopt;
}

}  // namespace nodepool::process
