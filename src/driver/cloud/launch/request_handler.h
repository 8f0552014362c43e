#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/cloud/provider_parts.h"
#include "driver/driver.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// All machines of one request are in one zone: that of a reused node, else one drawn when the first machine
// is needed (drivers.md 5.9). All attempts of the request use it.
class RequestHandler : public NodeRequestHandler {
 public:
  RequestHandler(ProviderParts& context, std::shared_ptr<const PoolConfig> pool,
                 store::StoredRequest request);

  Task<bool> CheckReusableNode(const store::StoredNode& node) override;
  void NodeReused(const Node& node) override;
  // Draws the zone and fills in what is known of the image, so that the record is
  // complete from its first version on.
  Task<> SetNodeMetadata(Node& node) override;
  Task<> Launch(store::LockedNode& node) override;

 private:
  using Zones = std::vector<std::optional<std::string>>;

  Task<> ChooseZone();
  // The pool's zones, else the cloud's.
  Task<Zones> ZonesToChooseFrom();

  ProviderParts& context_;
  std::shared_ptr<const PoolConfig> pool_;
  store::StoredRequest request_;
  log::Logger logger_;
  bool has_chosen_zone_ = false;
  std::optional<std::string> zone_;  // nullopt: none chosen, or the cloud's unnamed zone
};

}  // namespace nodepool::driver::cloud
