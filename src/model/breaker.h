#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/raw_json.h"

namespace nodepool {

// Why an attempt to launch a node failed, as far as that says who can help (breaker.md 1).
enum class FailureKind {
  kAuthentication,  // the cloud refuses our credentials, or what they permit
  kQuota,           // the account may not use more
  kCapacity,        // the cloud has no free machine of that size
  kBoot,            // the machine did not come up, or has no address
  kKeyScan,         // nobody answered at its address, or with other host keys
  kImage,           // what it boots from is missing or cannot be used
  kOther,
};

std::string_view ToString(FailureKind kind);  // "key-scan"
std::optional<FailureKind> ParseFailureKind(std::string_view text);

// When the breaker of a provider, pool or label opens, and when it is probed (breaker.md 5).
struct BreakerSettings {
  bool is_on = true;
  int failures = 3;                                 // attempts that failed, at least
  int share = 30;                                   // percent of the attempts, at least
  Duration window = std::chrono::hours(1);          // older attempts do not count
  Duration probe_after = std::chrono::seconds(30);  // the first pause; each failed probe doubles it
  Duration probe_max = std::chrono::minutes(10);    // the longest pause
};

// What a breaker is of: a provider; with a pool, that pool; with a label as well, that label in the pool.
struct BreakerKey {
  ProviderName provider;
  PoolName pool = {};    // empty: the whole provider
  LabelName label = {};  // empty: the whole pool
  auto operator<=>(const BreakerKey&) const = default;
};

// "label small in pool main of provider aws": for sentences.
std::string ToString(const BreakerKey& key);

// The same without the provider: "label small in pool main", "pool main", "the provider".
std::string PartOf(const BreakerKey& key);

// The keys that a launch of the label in the pool counts for, the widest first.
std::vector<BreakerKey> BreakerKeysOf(const PoolKey& pool, const LabelName& label);

// The record of an open breaker (breaker.md 4). A closed one has no record.
struct Breaker {
  std::optional<std::string> kind;   // of most of the failures, as ToString(FailureKind) writes it
  std::optional<std::string> kinds;  // "key-scan 2, boot 1"
  std::int64_t failures = 0;         // among `attempts`, when it opened
  std::int64_t attempts = 0;
  std::optional<std::string> said;  // the last error, shortened
  std::optional<WallTime> opened;
  std::optional<WallTime> next_probe;  // not before
  std::int64_t failed_probes = 0;
  std::int64_t relapses = 0;      // how often it opened soon after it had closed
  std::int64_t good_probes = 0;   // in a row; it closes when they are enough
  std::string prober;             // the launcher whose next launch is the probe, or is under way; empty: none
  std::int64_t tried_anyway = 0;  // requests that had no other pool
  std::string opened_by;          // the launcher
  Foreign foreign;
};

// The error says what is wrong with which key.
Expected<Breaker> ParseBreaker(std::string_view json);
std::string ToJson(const Breaker& breaker);

// "3 of 4 launches failed (key-scan 3), the last one: no answer at 192.0.2.1": for sentences, shortened, in
// one line, without characters that a terminal would obey.
std::string EvidenceOf(const Breaker& breaker);

}  // namespace nodepool
