#include "driver/cloud/launch/request_handler.h"

#include "async/deadline.h"
#include "async/task.h"
#include "driver/cloud/launch/launch.h"
#include "driver/cloud/launch/node_record.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kZonesLimit = std::chrono::seconds(60);

}  // namespace

RequestHandler::RequestHandler(ProviderParts& context, std::shared_ptr<const PoolConfig> pool,
                               store::StoredRequest request)
    : context_(context),
      pool_(std::move(pool)),
      request_(std::move(request)),
      logger_(log::Logger("nodepool.StateMachineHandler")
                  .About({request_.record.event_id.value_or(""), request_.id.str(), ""})) {}

Task<bool> RequestHandler::CheckReusableNode(const store::StoredNode& node) {
  if (zone_ && node.record.az != zone_) co_return false;
  NodeAccess access{node.record.connection_port.value(), node.record.driver_data.value()};
  Task<AccessState> asking = context_.adapter->StateOfAccess(std::move(access));
  Outcome<AccessState> state = co_await Attempt(std::move(asking));
  co_return !state || *state != AccessState::kEnds;
}

void RequestHandler::NodeReused(const Node& node) {
  if (has_chosen_zone_ || !node.az) return;
  zone_ = node.az;
  has_chosen_zone_ = true;
}

Task<> RequestHandler::SetNodeMetadata(Node& node) {
  WorkCount::Piece work(context_.work);
  co_await ChooseZone();
  auto label = node.type.empty() ? pool_->labels.end() : pool_->labels.find(node.type.front());
  if (label == pool_->labels.end()) co_return;
  try {
    FillBeforeLaunch(context_, *label->second, request_.record, node);
  } catch (const Error&) {
    // The launch gets the same error and reports it.
  }
}

Task<> RequestHandler::ChooseZone() {
  if (has_chosen_zone_) co_return;
  Outcome<Zones> zones = co_await Attempt(ZonesToChooseFrom());
  if (!zones) {
    logger_.Warning("The zones of provider {} are unknown; the cloud chooses for this node: {}",
                    context_.config->name, zones.error().message());
    co_return;
  }
  if (has_chosen_zone_) co_return;  // meanwhile, for another node of the request
  if (!zones->empty()) zone_ = zones->at(context_.environment.random.Below(zones->size()));
  has_chosen_zone_ = true;
}

Task<RequestHandler::Zones> RequestHandler::ZonesToChooseFrom() {
  Zones zones(pool_->availability_zones.begin(), pool_->availability_zones.end());
  if (!zones.empty()) co_return zones;
  SteadyTime deadline = context_.loop().SteadyNow() + kZonesLimit;
  zones = co_await WithDeadline(context_.loop(), deadline, "reading the zones",
                                context_.adapter->AvailabilityZones());
  co_return zones;
}

Task<> RequestHandler::Launch(store::LockedNode& node) {
  WorkCount::Piece work(context_.work);
  cloud::Launch launch(context_, pool_, request_, zone_, node);
  co_await launch.Run();
}

}  // namespace nodepool::driver::cloud
