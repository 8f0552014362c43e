#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

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

}  // namespace nodepool::testing
