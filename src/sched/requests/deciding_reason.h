#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "sched/requests/reason.h"

// Of all that keeps a request waiting, what decides: the log, the command line and the web show it alone
// (operations.md 6.3).
namespace nodepool::sched {

// For programs: "tenant-limit", "capacity" ...; stable.
std::string_view CodeOf(Reason reason);
inline constexpr std::string_view kCapacityCode = "capacity";  // of an accepted request
// The launcher that could say why does not answer.
inline constexpr std::string_view kSilentLauncherCode = "launcher-silent";
inline constexpr std::string_view kNoLauncherCode = "no-launcher";

// Why a request waits, in one sentence. Equal causes have equal texts.
struct RequestReason {
  std::string code;
  PoolKey pool;          // empty: it is not the reason of a pool
  std::string text;      // names provider and pool where they matter
  std::string launcher;  // hostname of the one that says so; empty: unknown

  bool operator==(const RequestReason&) const = default;
};

// The sentence of a pool's reason, whose `text` is what is said of the pool: "uses 2 of 2 instances". Reasons
// that concern the whole provider do not name the pool, those that concern the request name none.
std::string SentenceOf(std::string_view code, const PoolKey& pool, std::string_view text);

// The smaller, the sooner the pool could serve the request if it were not for this reason. Any code; unknown
// ones, of other versions, count as faults.
int RankOf(std::string_view code);

// Whether the reason only says that the request is left to other pools, so that it is left out where there is
// another one.
bool IsLeftToOthers(std::string_view code);

// The reason that decides: the one of the smallest rank, the first of equals. Null: there is none.
const RequestReason* DecidingReason(const std::vector<RequestReason>& reasons);

// That a launcher does not answer, and why.
RequestReason SilentLauncher(const std::string& hostname, std::string_view why);

}  // namespace nodepool::sched
