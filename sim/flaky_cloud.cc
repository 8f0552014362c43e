#include "sim/flaky_cloud.h"

#include "base/error.h"
#include "driver/cloud/cloud_provider.h"
#include "drivers/fake/fake_adapter.h"

namespace nodepool::sim {
namespace {

using driver::QuotaInformation;
using driver::cloud::Adapter;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

// The network between a process and a cloud.
class Line {
 public:
  Line(Loop& loop, Clouds& clouds, ProviderName provider, ApiUser& user)
      : loop_(loop),
        random_(clouds.random),
        weather_(clouds.weather[provider]),
        provider_(std::move(provider)),
        user_(user) {}

  // Ends when the call has reached the cloud; if it throws, the call had no effect.
  Task<> Reach() {
    co_await Travel();
    if (weather_.is_out || Fails()) throw Error(Verdict::kRetry, "the cloud could not be reached");
  }
  // Ends when the answer has arrived; if it throws, the call had its effect nevertheless.
  Task<> Return() {
    co_await Travel();
    if (Fails()) throw Error(Verdict::kRetry, "the cloud's answer was lost");
  }
  void QuotaIsKnown() { user_.knows_quota.try_emplace(provider_, loop_.SteadyNow()); }

 private:
  bool Fails() { return weather_.fault_rate > 0 && random_.Between(0, 1) < weather_.fault_rate / 2; }
  Task<> Travel() {
    RequireLife();
    if (weather_.max_latency > Duration(0)) {
      co_await loop_.SleepFor(
          Duration(random_.Below(static_cast<std::uint64_t>(weather_.max_latency.count()))));
    }
    RequireLife();
  }
  void RequireLife() const {
    if (user_.is_dead) throw Error(Verdict::kFail, "the process is dead");
  }

  Loop& loop_;
  Random& random_;
  ApiWeather& weather_;
  ProviderName provider_;
  ApiUser& user_;
};

// Passes a creation's reports on; the machine's id only after the answer's delay.
class DistantMachine : public MachineReport {
 public:
  DistantMachine(MachineReport& inner, Line& line) : inner_(inner), line_(line) {}
  void SetState(std::string state) override { inner_.SetState(std::move(state)); }
  Task<> SetExternalId(boost::json::value id) override {
    co_await line_.Return();
    co_await inner_.SetExternalId(std::move(id));
  }
  const log::Logger& logger() const override { return inner_.logger(); }
  int attempt() const override { return inner_.attempt(); }

 private:
  MachineReport& inner_;
  Line& line_;
};

class FlakyAdapter : public Adapter {
 public:
  FlakyAdapter(std::unique_ptr<Adapter> inner, Line line)
      : inner_(std::move(inner)), line_(std::move(line)) {}

  Task<Instance> Create(MachineReport& machine, CreateParameters parameters) override {
    co_await line_.Reach();
    DistantMachine distant(machine, line_);
    Instance instance = co_await inner_->Create(distant, std::move(parameters));
    co_return instance;
  }
  Task<> Delete(MachineReport& machine, boost::json::value external_id) override {
    co_await line_.Reach();
    co_await inner_->Delete(machine, std::move(external_id));
    co_await line_.Return();
  }
  Task<std::vector<Instance>> ListInstances() override {
    co_await line_.Reach();
    std::vector<Instance> instances = co_await inner_->ListInstances();
    co_await line_.Return();
    line_.QuotaIsKnown();
    co_return instances;
  }
  Task<std::vector<Resource>> ListResources() override {
    co_await line_.Reach();
    std::vector<Resource> resources = co_await inner_->ListResources();
    co_await line_.Return();
    co_return resources;
  }
  Task<> DeleteResource(Resource resource) override {
    co_await line_.Reach();
    co_await inner_->DeleteResource(std::move(resource));
    co_await line_.Return();
  }
  Task<QuotaInformation> QuotaLimits() override {
    co_await line_.Reach();
    QuotaInformation limits = co_await inner_->QuotaLimits();
    co_await line_.Return();
    co_return limits;
  }
  QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override {
    return inner_->QuotaForLabel(label);
  }
  Task<std::vector<std::optional<std::string>>> AvailabilityZones() override {
    co_await line_.Reach();
    std::vector<std::optional<std::string>> zones = co_await inner_->AvailabilityZones();
    co_await line_.Return();
    co_return zones;
  }
  driver::Readiness LabelReady(const driver::LabelConfig& label) override {
    return inner_->LabelReady(label);
  }

 private:
  std::unique_ptr<Adapter> inner_;
  Line line_;
};

}  // namespace

Clouds::Clouds(Loop& loop, Random& the_random,
               const std::map<ProviderName, drivers::FakeSimulation>& settings)
    : random(the_random) {
  for (const auto& [provider, simulation] : settings) {
    all.Of(provider, loop, random, simulation);
    weather[provider] = {};
  }
}

std::unique_ptr<driver::Provider> FlakyDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  // A new provider has to read the quota again.
  user_.knows_quota.erase(config->name);
  // The cloud itself exists already and outlives every process.
  drivers::FakeCloud& cloud = *clouds_.all.Find(config->name);
  Line line(environment.loop, clouds_, config->name, user_);
  auto adapter =
      std::make_unique<FlakyAdapter>(std::make_unique<drivers::FakeAdapter>(cloud, config), std::move(line));
  return driver::cloud::MakeCloudProvider(std::move(environment), std::move(config), std::move(adapter),
                                          nullptr);
}

}  // namespace nodepool::sim
