#include "net/service_manager.h"

#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace nodepool::net {
namespace {

constexpr timeval kSendTimeout{0, 250'000};

std::optional<std::int64_t> NumberIn(const char* text) {
  if (text == nullptr) return std::nullopt;
  std::string_view digits(text);
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

ServiceManager::ServiceManager(const char* address) {
  std::string_view name = address == nullptr ? "" : address;
  auto& place = reinterpret_cast<sockaddr_un&>(place_);
  bool is_abstract = name.starts_with('@');
  bool is_usable = (is_abstract || name.starts_with('/')) && name.size() < sizeof(place.sun_path);
  if (!is_usable) return;
  place.sun_family = AF_UNIX;
  std::ranges::copy(name, place.sun_path);
  if (is_abstract) place.sun_path[0] = '\0';
  place_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1));
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ >= 0) ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout));
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::Notify(std::string_view lines) {
  if (socket_ < 0) return;
  ::sendto(socket_, lines.data(), lines.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&place_),
           place_size_);
}

std::optional<Duration> WatchdogInterval(const char* microseconds, const char* pid) {
  std::optional<std::int64_t> interval = NumberIn(microseconds);
  if (!interval || *interval <= 0) return std::nullopt;
  if (pid != nullptr && NumberIn(pid) != ::getpid()) return std::nullopt;
  return std::chrono::microseconds(*interval);
}

std::string StatusLine(std::string_view text) {
  std::string line = "STATUS=" + std::string(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace nodepool::net
