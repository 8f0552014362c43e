#include "driver/loading/guarded_provider.h"

#include <fmt/format.h>

#include <cmath>

#include "base/log/logging.h"

namespace nodepool::driver {

namespace {

// Handles failures of driver calls that are not expected to fail.
class Guard {
 public:
  explicit Guard(std::string provider) : provider_(std::move(provider)) {}

  // Logs each kind of failure once, not each time.
  void Report(std::string_view call, std::string message) {
    if (message == known_) return;
    logger_.Error("The driver of provider {} failed in {}: {}", provider_, call, message);
    known_ = std::move(message);
  }

  template <class Call>
  void Run(std::string_view name, Call call) {
    try {
      call();
    } catch (...) {
      Report(name, MessageOf(std::current_exception()));
    }
  }

  const std::string& provider() const { return provider_; }

 private:
  std::string provider_;
  std::string known_;
  log::Logger logger_{"nodepool.driver.Drivers"};
};

class GuardedHandler : public NodeRequestHandler {
 public:
  GuardedHandler(std::shared_ptr<Guard> guard, std::unique_ptr<NodeRequestHandler> handler)
      : guard_(std::move(guard)), handler_(std::move(handler)) {}

  void NodeReused(const Node& node) override {
    guard_->Run("NodeReused", [&] { handler_->NodeReused(node); });
  }
  Task<bool> CheckReusableNode(const store::StoredNode& node) override {
    return handler_->CheckReusableNode(node);
  }
  Task<> SetNodeMetadata(Node& node) override { return handler_->SetNodeMetadata(node); }
  Task<> Launch(store::LockedNode& node) override { return handler_->Launch(node); }

 private:
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<NodeRequestHandler> handler_;
};

// Amounts that can be compared: no NaN, and no negative ones where they make no sense.
QuotaInformation Checked(QuotaInformation quota, std::string_view call, bool may_be_negative) {
  for (const auto& [resource, amount] : quota.resources()) {
    if (std::isnan(amount) || (!may_be_negative && amount < 0)) {
      throw Error(Verdict::kFail,
                  fmt::format("{} returned {} {}, which makes no sense", call, amount, resource));
    }
  }
  return quota;
}

class GuardedProvider : public Provider {
 public:
  GuardedProvider(std::shared_ptr<const ProviderConfig> config, std::unique_ptr<Provider> provider)
      : config_(std::move(config)),
        provider_(std::move(provider)),
        guard_(std::make_shared<Guard>(config_->name.str())) {}

  const ProviderConfig& config() const override { return *config_; }
  Task<> Start() override { return provider_->Start(); }
  void Idle() override {
    guard_->Run("Idle", [&] { provider_->Idle(); });
  }
  Task<> Stop() override { return provider_->Stop(); }
  bool launches_nodes() const override { return provider_->launches_nodes(); }

  Readiness LabelReady(const LabelConfig& label) override {
    Readiness readiness = Readiness::kNotReady;
    guard_->Run("LabelReady", [&] { readiness = provider_->LabelReady(label); });
    return readiness;
  }
  QuotaInformation AvailableQuota() override {
    return Checked(provider_->AvailableQuota(), "AvailableQuota", true);
  }
  QuotaInformation UsedByOthers() override {
    return Checked(provider_->UsedByOthers(), "UsedByOthers", false);
  }
  bool waits_for_others() const override { return provider_->waits_for_others(); }
  QuotaInformation QuotaForLabel(const LabelConfig& label) override {
    return Checked(provider_->QuotaForLabel(label), "QuotaForLabel", false);
  }
  Task<> LookAgain() override { return provider_->LookAgain(); }
  void InvalidateQuota() override {
    guard_->Run("InvalidateQuota", [&] { provider_->InvalidateQuota(); });
  }

  std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                     const store::StoredRequest& request) override {
    auto handler = provider_->RequestHandler(std::move(pool), request);
    if (!handler)
      throw Error(Verdict::kFail, "the driver of provider " + guard_->provider() + " returned no handler");
    return std::make_unique<GuardedHandler>(guard_, std::move(handler));
  }
  void NodeDeleted(const NodeId& id, const Node& node) override {
    guard_->Run("NodeDeleted", [&] { provider_->NodeDeleted(id, node); });
  }
  Task<> DeleteResources(const NodeId& id, const Node& node) override {
    return provider_->DeleteResources(id, node);
  }
  Task<> CleanupLeakedResources() override { return provider_->CleanupLeakedResources(); }

 private:
  std::shared_ptr<const ProviderConfig> config_;
  std::unique_ptr<Provider> provider_;
  std::shared_ptr<Guard> guard_;
};

Driver& DriverOf(const Registry& drivers, const ProviderConfig& config) {
  if (!config.fault.empty()) throw Error(Verdict::kFail, config.fault);
  Driver* driver = drivers.Find(config.driver);
  if (driver == nullptr) throw Error(Verdict::kInvalid, "there is no driver " + config.driver);
  return *driver;
}

template <class Part>
std::unique_ptr<Part> NotNull(std::unique_ptr<Part> part, const ProviderConfig& config,
                              std::string_view what) {
  if (!part) throw Error(Verdict::kFail, fmt::format("driver {} returned no {}", config.driver, what));
  return part;
}

}  // namespace

std::unique_ptr<Provider> CreateGuarded(const Registry& drivers, ProviderEnvironment environment,
                                        std::shared_ptr<const ProviderConfig> config) {
  auto provider = DriverOf(drivers, *config).CreateProvider(std::move(environment), config);
  provider = NotNull(std::move(provider), *config, "provider");
  return std::make_unique<GuardedProvider>(std::move(config), std::move(provider));
}

std::unique_ptr<ImageStore> CreateImageStore(const Registry& drivers, DriverEnvironment environment,
                                             std::shared_ptr<const ProviderConfig> config) {
  return NotNull(DriverOf(drivers, *config).CreateImageStore(environment, config), *config, "image store");
}

std::unique_ptr<OperatorTools> CreateOperatorTools(const Registry& drivers, ToolsEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config) {
  return NotNull(DriverOf(drivers, *config).CreateOperatorTools(environment, config), *config, "tools");
}

}  // namespace nodepool::driver
