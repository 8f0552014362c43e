#pragma once

#include <cstdint>
#include <string>

namespace nodepool {

// Bytes that are made while they are read, in order. Its functions may block.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The next bytes, at most `size`; fewer, or none, although it is not at its end: one call does a bounded
  // part of the work. Errors: why they cannot be made.
  virtual std::string Read(std::size_t size) = 0;
  virtual bool is_at_end() const = 0;
  // How much of what they are made of has been read.
  virtual std::uint64_t place() const = 0;
};

}  // namespace nodepool
