// Which sessions the server gives up, and which are those of its own process.
#include <algorithm>
#include <utility>
#include <vector>

#include "zk/server/password.h"
#include "zk/server/server.h"

namespace nodepool::zk::server {

// Those of the process that had the journal before this one and was killed: nobody can continue them.
void Server::CloseOwnSessions() {
  std::vector<std::int64_t> left;
  for (const auto& [id, session] : engine_.sessions()) {
    if (session.is_own) left.push_back(id);
  }
  for (std::int64_t id : left) {
    logger_.Info("Closing the ZooKeeper session 0x{:x} of the process that served {} before and was killed",
                 static_cast<std::uint64_t>(id), options_.journal);
    clock_.Stop(id);
    engine_.CloseSession(id);
  }
}

// Closes those without a client and without ephemeral znodes, which nothing depends on: a hundredth of all
// that there may be, the longest silent ones first, so that the search is worth its cost.
void Server::CloseAbandonedSessions() {
  std::vector<std::pair<SteadyTime, std::int64_t>> abandoned;
  for (const auto& [id, session] : engine_.sessions()) {
    if (by_session_.contains(id) || !engine_.tree().Ephemerals(id).empty()) continue;
    abandoned.emplace_back(clock_.LastHeard(id), id);
  }
  std::ranges::sort(abandoned);
  abandoned.resize(std::min(abandoned.size(), options_.sessions / 100 + 1));
  for (const auto& [heard, id] : abandoned) {
    clock_.Stop(id);
    engine_.CloseSession(id);
  }
}

// Whether a client in this process opens or continues a session.
bool Server::IsOwn(const protocol::ConnectRequest& request) const {
  if (request.session_id != 0) {
    const SessionRecord* session = engine_.FindSession(request.session_id);
    return session != nullptr && session->is_own;
  }
  const std::string& own = options_.own_password;
  return !own.empty() && IsSameSecret(request.password, own);
}

}  // namespace nodepool::zk::server
