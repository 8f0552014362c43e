#pragma once

#include <cstdint>
#include <random>
#include <string>

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

class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace nodepool
