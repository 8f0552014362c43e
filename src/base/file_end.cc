#include "base/file_end.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/scope_exit.h"

namespace nodepool {
namespace {

[[noreturn]] void FailToRead(const std::string& path, const char* why) {
  throw Error(Verdict::kFail, fmt::format("{} cannot be read: {}", path, why));
}

}  // namespace

std::string ReadFileEnd(const std::string& path, std::size_t size) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) FailToRead(path, std::strerror(errno));
  ScopeExit close([file] { ::close(file); });
  struct stat status;
  if (::fstat(file, &status) != 0) FailToRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) FailToRead(path, "it is no regular file");
  off_t start = std::max<off_t>(0, status.st_size - static_cast<off_t>(size));
  std::string text(static_cast<std::size_t>(status.st_size - start), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    ssize_t count =
        ::pread(file, text.data() + filled, text.size() - filled, start + static_cast<off_t>(filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailToRead(path, std::strerror(errno));
    if (count == 0) break;  // it was cut meanwhile
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  if (start > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

}  // namespace nodepool
