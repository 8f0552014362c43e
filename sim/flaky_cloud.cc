#include "sim/flaky_cloud.h"

#include <algorithm>

#include "async/task.h"
#include "base/error.h"
#include "driver/cloud/cloud_driver.h"
#include "drivers/fake/fake_driver.h"

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
    if (weather_.is_out || Fails()) throw Error(Verdict::kRetry, std::string(kUnreachable));
    if (Happens(weather_.throttle_rate)) throw Error(Verdict::kRateLimited, std::string(kThrottled));
  }
  // Ends when the answer has arrived; if it throws, the call had its effect nevertheless.
  Task<> Return() {
    co_await Travel();
    if (Fails()) throw Error(Verdict::kRetry, "the cloud's answer was lost");
  }
  // Throws what the cloud refuses of a creation now.
  void RequireAdmission(const LabelName& label) const {
    if (weather_.without_quota.contains(label)) throw Error(Verdict::kQuota, std::string(kNoQuota));
    if (weather_.without_capacity.contains(label)) {
      throw driver::cloud::LaunchError(driver::cloud::LaunchError::Kind::kCapacity, std::string(kNoCapacity));
    }
  }
  void QuotaIsKnown() { user_.knows_quota.try_emplace(provider_, loop_.SteadyNow()); }

 private:
  bool Happens(double rate) { return rate > 0 && random_.Between(0, 1) < rate; }
  bool Fails() { return Happens(weather_.fault_rate / 2); }
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

std::string TextOf(const boost::json::value& id) { return id.is_string() ? std::string(id.as_string()) : ""; }

// One cloud as its manner shows it.
class MannerlyCloud {
 public:
  MannerlyCloud(Loop& loop, Clouds& clouds, const ProviderName& provider)
      : loop_(loop),
        manner_(clouds.manners[provider]),
        view_(clouds.views[provider]),
        cloud_(*clouds.all.Find(provider)) {}

  const Manner& manner() const { return manner_; }

  void Created(const std::string& id) {
    if (manner_.unlisted > Duration(0)) view_.listed_from[id] = loop_.SteadyNow() + manner_.unlisted;
  }

  // What lists go on to show of a machine that is about to be deleted.
  Task<> Keep(Adapter& inner, std::string id) {
    if (manner_.lingers == Duration(0) || view_.ghosts.contains(id)) co_return;
    CloudView::Ghost ghost;
    ghost.resources = co_await inner.ListResources();
    std::erase_if(ghost.resources, [&id](const Resource& resource) { return resource.id != id; });
    ghost.until = loop_.SteadyNow() + manner_.lingers;
    view_.ghosts[id] = std::move(ghost);
  }

  // A deletion that goes on by itself, until it ends.
  Task<> EndSlowly(std::string id) {
    if (manner_.ends_slowly == Duration(0) || !cloud_.servers().contains(id)) co_return;
    SteadyTime end = view_.ending.try_emplace(id, loop_.SteadyNow() + manner_.ends_slowly).first->second;
    co_await loop_.SleepUntil(end);
    EndDeletions();
  }

  // Ends what deletions have been given up by their callers.
  void EndDeletions() {
    std::erase_if(view_.ending, [this](const auto& deletion) {
      bool has_ended = loop_.SteadyNow() >= deletion.second;
      if (has_ended) cloud_.TakeAway(deletion.first);
      return has_ended;
    });
  }

  void Show(std::vector<Instance>& instances) {
    std::erase_if(instances,
                  [this](const Instance& instance) { return IsHidden(TextOf(instance.external_id)); });
    GoBack(view_.instances_before, instances);
  }
  void Show(std::vector<Resource>& resources) {
    std::erase_if(resources, [this](const Resource& resource) { return IsHidden(resource.id); });
    for (const auto& [id, ghost] : Ghosts()) {
      if (std::ranges::find(resources, id, &Resource::id) == resources.end())
        resources.insert(resources.end(), ghost.resources.begin(), ghost.resources.end());
    }
    GoBack(view_.resources_before, resources);
  }

 private:
  template <class List>
  void GoBack(std::optional<List>& before, List& now) const {
    if (view_.old_lists > 0 && before) {
      now = *before;
    } else {
      before = now;
    }
  }
  bool IsHidden(const std::string& id) const {
    auto found = view_.listed_from.find(id);
    return found != view_.listed_from.end() && loop_.SteadyNow() < found->second;
  }
  const std::map<std::string, CloudView::Ghost>& Ghosts() {
    std::erase_if(view_.ghosts,
                  [this](const auto& ghost) { return loop_.SteadyNow() >= ghost.second.until; });
    return view_.ghosts;
  }

  Loop& loop_;
  const Manner& manner_;
  CloudView& view_;
  drivers::FakeCloud& cloud_;
};

// Passes a creation's reports on; the machine's id only after the answer's delay.
class DistantMachine : public MachineReport {
 public:
  DistantMachine(MachineReport& inner, Line& line, MannerlyCloud& cloud)
      : inner_(inner), line_(line), cloud_(cloud) {}
  void SetState(std::string state) override { inner_.SetState(std::move(state)); }
  Task<> SetExternalId(boost::json::value id) override {
    cloud_.Created(TextOf(id));
    co_await Answer();
    co_await inner_.SetExternalId(std::move(id));
    for (int call = 0; call < cloud_.manner().further_calls; ++call) {
      co_await line_.Reach();
      co_await line_.Return();
    }
  }
  const log::Logger& logger() const override { return inner_.logger(); }
  int attempt() const override { return inner_.attempt(); }

 private:
  // Of the creation, which is sent again with the same client token where the cloud has such.
  Task<> Answer() {
    Outcome<> answered = co_await Attempt(line_.Return());
    for (int more = 0; !answered && cloud_.manner().repeats_creation && more < 3; ++more) {
      Outcome<> reached = co_await Attempt(line_.Reach());
      if (reached) answered = co_await Attempt(line_.Return());
    }
    if (!answered) answered.error().Rethrow();
  }

  MachineReport& inner_;
  Line& line_;
  MannerlyCloud& cloud_;
};

class FlakyAdapter : public Adapter {
 public:
  FlakyAdapter(std::unique_ptr<Adapter> inner, Line line, MannerlyCloud cloud)
      : inner_(std::move(inner)), line_(std::move(line)), cloud_(std::move(cloud)) {}

  Task<Instance> Create(MachineReport& machine, CreateParameters parameters) override {
    co_await line_.Reach();
    line_.RequireAdmission(parameters.label->name);
    cloud_.EndDeletions();
    DistantMachine distant(machine, line_, cloud_);
    Instance instance = co_await inner_->Create(distant, std::move(parameters));
    co_return instance;
  }
  Task<> Delete(MachineReport& machine, boost::json::value external_id) override {
    co_await line_.Reach();
    std::string id = TextOf(external_id);
    co_await cloud_.Keep(*inner_, id);
    co_await cloud_.EndSlowly(std::move(id));
    co_await inner_->Delete(machine, std::move(external_id));
    co_await line_.Return();
  }
  Task<std::vector<Instance>> ListInstances() override {
    co_await line_.Reach();
    cloud_.EndDeletions();
    std::vector<Instance> instances = co_await inner_->ListInstances();
    cloud_.Show(instances);
    co_await line_.Return();
    line_.QuotaIsKnown();
    co_return instances;
  }
  Task<std::vector<Resource>> ListResources() override {
    co_await line_.Reach();
    cloud_.EndDeletions();
    std::vector<Resource> resources = co_await inner_->ListResources();
    cloud_.Show(resources);
    co_await line_.Return();
    co_return resources;
  }
  Task<> DeleteResource(Resource resource) override {
    co_await line_.Reach();
    co_await cloud_.Keep(*inner_, resource.id);
    co_await cloud_.EndSlowly(resource.id);
    co_await inner_->DeleteResource(std::move(resource));
    co_await line_.Return();
  }
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override {
    if (!cloud_.manner().takes_machines) co_return std::vector<boost::json::value>();
    co_return co_await NotListed(std::move(ids));
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
  MannerlyCloud cloud_;
};

}  // namespace

Manner Ec2Like() {
  Manner manner;
  manner.name = "like EC2";
  manner.unlisted = std::chrono::seconds(20);
  manner.lingers = std::chrono::seconds(30);
  manner.throttle_rate = 0.05;
  manner.repeats_creation = true;
  manner.takes_machines = true;
  return manner;
}

Manner KubernetesLike() {
  Manner manner;
  manner.name = "like Kubernetes";
  manner.further_calls = 5;
  manner.ends_slowly = std::chrono::seconds(90);
  manner.takes_machines = true;
  return manner;
}

Clouds::Clouds(Loop& loop, Random& the_random,
               const std::map<ProviderName, drivers::FakeSimulation>& settings,
               const std::map<ProviderName, Manner>& the_manners)
    : random(the_random), manners(the_manners) {
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
  auto make = [&](const driver::cloud::AdapterEnvironment&) {
    return std::make_unique<FlakyAdapter>(std::make_unique<drivers::FakeAdapter>(cloud, config),
                                          std::move(line),
                                          MannerlyCloud(environment.loop, clouds_, config->name));
  };
  return driver::cloud::MakeCloudProvider(environment, config, make, nullptr);
}

}  // namespace nodepool::sim
