#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace nodepool::net {

// Reads what an SSH server sends before keys are exchanged (RFC 4253, 4.2 and 7.1): its identification, and
// the packet in which it lists the algorithms it offers. Keeps a bounded part of what it is given.
class ServerHello {
 public:
  static constexpr std::size_t kMostBytesOfLine = 2048;

  // Takes the bytes that the server sent next. Returns what an SSH library is to read of all that was not
  // passed on before: everything from the identification on. So that is at most a line longer than `bytes`.
  // Error(kRetry): this is no SSH server.
  Expected<std::string> Add(std::string_view bytes);

  // In the server's order. nullopt: they are not known, since the packet is not complete, or is not the
  // first.
  const std::optional<std::vector<std::string>>& host_key_algorithms() const { return host_key_algorithms_; }

 private:
  enum class Part { kLines, kPacket, kRest };

  Expected<std::string> ReadLines();
  void ReadPacket();

  Part part_ = Part::kLines;
  std::string pending_;  // received, and not read yet
  int lines_ = 0;        // before the identification
  std::optional<std::vector<std::string>> host_key_algorithms_;
};

}  // namespace nodepool::net
