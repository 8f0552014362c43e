#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/node_claim.h"
#include "model/lease.h"

namespace nodepool::cli {

// What a server says of a lease (http-requests.md 3), as far as its client needs it.
struct LeaseView {
  LeaseId id;
  LeaseState state = LeaseState::kWaiting;
  Duration lasts{};                  // without a renewal; positive
  std::string failure;               // why it failed
  std::optional<std::size_t> ready;  // nodes that are ready; none: its request is not accepted yet
  std::string why;                   // the reason that decides that it waits; empty: none
  std::vector<ClaimedNode> nodes;    // of a held lease; records have what is needed for a login
};

// The server is trusted no more than records are: Error(kInvalid) says what is wrong with the answer.
Expected<LeaseView> ReadLeaseView(std::string_view answer);

}  // namespace nodepool::cli
