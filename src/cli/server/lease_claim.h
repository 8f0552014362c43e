#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/node_claim.h"
#include "cli/server/lease_client.h"

namespace nodepool::cli {

// For how long things may last.
struct LeaseTimes {
  Duration lease = std::chrono::minutes(5);          // of the lease, without a renewal
  Duration first_answer = std::chrono::seconds(10);  // until the server must have answered once
};

// A claim that is a lease over HTTP. A server that does not answer is asked again until the lease's end;
// after that the nodes are not ours any more.
class LeaseClaim : public NodeClaim {
 public:
  // `console` and `client` outlive it.
  LeaseClaim(Console& console, LeaseClient& client, NodeWish wish, LeaseTimes times);

  Task<> Obtain() override;
  Task<> Keep(SteadyTime end) override;
  // Reports, and does not throw, that the server could not be asked.
  Task<> End() override;

  std::vector<ClaimedNode> nodes() const override { return nodes_; }
  std::string Progress() const override;
  std::string WhyWaiting() const override;
  Task<> AskForProgress() override;

 private:
  using Call = Task<LeaseView> (LeaseClaim::*)();

  Task<LeaseView> Make();
  Task<LeaseView> Poll();
  Task<LeaseView> Renew();
  // Calls until there is an answer, or an error that another attempt does not cure, or the deadline.
  Task<LeaseView> Insist(Call call, SteadyTime deadline);
  bool IsFinal(Verdict verdict) const;
  Task<> GiveBack();
  Task<> GiveBackOnce();
  void DropNodesBut(const std::vector<ClaimedNode>& kept);

  Console& console_;
  LeaseClient& client_;
  const NodeWish wish_;
  const LeaseTimes times_;
  const std::string key_;
  bool may_exist_ = false;  // the server may have made a lease
  LeaseView seen_;          // the latest answer; without an id before the first
  SteadyTime renewed_{};    // a renewal was sent then, and confirmed
  std::vector<ClaimedNode> nodes_;
};

}  // namespace nodepool::cli
