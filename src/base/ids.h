#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "base/text.h"

namespace nodepool {

// A string type that cannot be confused with another kind of string. Empty means "none".
template <class Tag>
struct StrongId {
  std::string value;

  StrongId() = default;
  explicit StrongId(std::string text) : value(std::move(text)) {}

  bool empty() const { return value.empty(); }
  const std::string& str() const { return value; }
  auto operator<=>(const StrongId&) const = default;
};

using NodeId = StrongId<struct NodeIdTag>;              // "0000012345"
using RequestId = StrongId<struct RequestIdTag>;        // "200-0000004711"
using BuildId = StrongId<struct BuildIdTag>;            // 32 hex digits, or 10 decimal ones in old data
using UploadId = StrongId<struct UploadIdTag>;          // "0000000001", unique within image, build, provider
using ImageName = StrongId<struct ImageNameTag>;        // a diskimage
using ProviderName = StrongId<struct ProviderNameTag>;  // an entry of `providers`
using PoolName = StrongId<struct PoolNameTag>;          // unique within its provider
using LabelName = StrongId<struct LabelNameTag>;        // what a request asks for
using TenantName = StrongId<struct TenantNameTag>;
using JobId = StrongId<struct JobIdTag>;            // "0000000003", a rule about jobs
using LeaseId = StrongId<struct LeaseIdTag>;        // 32 hex digits, a client's right to nodes
using LauncherId = StrongId<struct LauncherIdTag>;  // identity of one pool worker (coordination.md 9.1)

// A pool is identified by both names; the joined names may be ambiguous (launcher.md 3.2).
struct PoolKey {
  ProviderName provider;
  PoolName pool;
  auto operator<=>(const PoolKey&) const = default;
};

}  // namespace nodepool

// Ids are keys of hash tables, whose hash nobody can predict (text.h).
template <class Tag>
struct std::hash<nodepool::StrongId<Tag>> {
  std::size_t operator()(const nodepool::StrongId<Tag>& id) const { return nodepool::HashText(id.value); }
};

// Ids are formatted as their text.
template <class Tag>
struct fmt::formatter<nodepool::StrongId<Tag>> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const nodepool::StrongId<Tag>& id, Context& context) const {
    return fmt::formatter<std::string>::format(id.value, context);
  }
};

namespace nodepool {

// The only source of randomness, so that a simulation can be replayed from its seed.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t Next() = 0;

  // Uniform in [0, bound); bound must be positive.
  std::uint64_t Below(std::uint64_t bound);
  // Uniform in [low, high).
  double Between(double low, double high);
  // 32 lower-case hex digits of a version 4 UUID.
  std::string UuidHex();
  // The same with dashes, 36 characters.
  std::string Uuid();
};

// Seeded from the operating system.
class SystemRandom : public Random {
 public:
  SystemRandom();
  std::uint64_t Next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Repeatable: the same seed gives the same numbers.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace nodepool
