#pragma once

#include <expected>
#include <string>
#include <utility>

namespace nodepool::operate {

// Why an operator's change was not made. Nothing was written then. Faults of ZooKeeper are thrown.
struct Refusal {
  enum class Kind {
    kNotFound,  // there is no such node, image, build, upload or provider
    kConflict,  // its state, another process or the configuration does not allow it
  };
  Kind kind = Kind::kNotFound;
  std::string why;  // for people, without a full stop
};

using Done = std::expected<void, Refusal>;

inline std::unexpected<Refusal> NotFound(std::string why) {
  return std::unexpected(Refusal{Refusal::Kind::kNotFound, std::move(why)});
}

inline std::unexpected<Refusal> Conflict(std::string why) {
  return std::unexpected(Refusal{Refusal::Kind::kConflict, std::move(why)});
}

}  // namespace nodepool::operate
