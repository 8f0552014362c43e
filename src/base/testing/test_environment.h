#pragma once

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace nodepool::testing {

// A TCP port on which nothing listens. Another process could take it before the caller does. That is
// unlikely: it is below those that the kernel assigns to connections, and each process begins somewhere else,
// by its id.
inline int FreePort() {
  constexpr int kFirst = 10'000, kCount = 20'000;
  static int next = static_cast<int>(::getpid()) % kCount * 613 % kCount;
  for (int tries = 0; tries < 1000; ++tries) {
    int port = kFirst + next;
    next = (next + 1) % kCount;
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    bool is_free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    if (is_free) return port;
  }
  throw std::runtime_error("no free port");
}

// How often a test does something with other chances, or among how many: `usual`, or `sanitized` in a build
// with sanitizers, where it takes ten times as long.
constexpr int Often(int usual, int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
  constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  constexpr bool kIsSanitized = false;
#endif
  return kIsSanitized ? sanitized : usual;
}

// An empty folder, removed with all that is in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "nodepool-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace nodepool::testing
