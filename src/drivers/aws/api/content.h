#pragma once

#include <string>

namespace nodepool::drivers::aws {

// Bytes to send, with their digest, so that the loop's thread hashes no large content.
struct Content {
  std::string bytes;
  std::string sha256;  // hex
};

// Hashes the bytes; call it off the loop where there are many.
Content MakeContent(std::string bytes);

// The bytes that `hex` stands for, two digits each.
std::string BytesOfHex(const std::string& hex);

}  // namespace nodepool::drivers::aws
