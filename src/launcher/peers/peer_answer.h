#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/ids.h"
#include "sched/requests/deciding_reason.h"

namespace nodepool::launcher {

// Where a launcher reports why requests wait, and how many at most another launcher asks for.
inline constexpr const char* kReasonsTarget = "/api/v1/reasons?limit=500";
inline constexpr std::size_t kMaxPeerReasons = 500;
inline constexpr std::size_t kMaxPeerAnswer = 1 << 20;  // bytes

using PeerAnswer = std::map<RequestId, sched::RequestReason>;

// What the launcher on the host answered. It is trusted no more than records are: entries beyond the limit
// are left out, texts are cut and made visible. Error(kInvalid) says what is wrong with the answer.
Expected<PeerAnswer> ReadPeerAnswer(std::string_view answer, const std::string& hostname);

}  // namespace nodepool::launcher
