#include "sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/image.h"
#include "model/node.h"

namespace nodepool::sim {
namespace {

using std::chrono::seconds;

struct Size {
  const char* label;
  const char* flavor;
  int cores;
  int ram;  // MiB
};
// Two labels of one flavor: nodes of one can use up the capacity of the other.
constexpr Size kSizes[] = {
    {"small", "Small", 2, 2048}, {"other", "Small", 2, 2048}, {"large", "Large", 4, 8192}};

const Size& SizeOf(const LabelName& label) {
  for (const Size& size : kSizes) {
    if (label.value == size.label) return size;
  }
  return kSizes[0];
}

// Draws the parts of a scenario.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  bool Chance(double probability) { return random_.Between(0, 1) < probability; }
  int Int(int low, int high) {  // both inclusive
    return low + static_cast<int>(random_.Below(static_cast<std::uint64_t>(high - low + 1)));
  }
  Duration Time(double low, double high) {  // seconds
    return std::chrono::milliseconds(static_cast<std::int64_t>(random_.Between(low, high) * 1000));
  }
  template <class T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[random_.Below(choices.size())];
  }

 private:
  SeededRandom random_;
};

std::shared_ptr<driver::LabelConfig> MakeLabel(const Size& size) {
  auto label = std::make_shared<drivers::FakeLabel>();
  label->name = LabelName(size.label);
  label->cloud_image = "image";
  label->flavor_name = size.flavor;
  return label;
}

// A label that boots from the uploads of an image, and the one for their validation
// (driver/loading/load_config.h).
void OfferImage(driver::PoolConfig& pool) {
  for (const LabelName& name : {LabelName(kImageLabel), ValidationLabel(LabelName(kImageLabel))}) {
    auto label = MakeLabel(kSizes[0]);
    label->name = name;
    label->cloud_image.reset();
    label->diskimage = ImageName(kImage);
    pool.Offer(label);
  }
}

void UploadImages(driver::ProviderConfig& provider) {
  auto image = std::make_shared<driver::ProviderDiskImage>();
  image->name = ImageName(kImage);
  provider.manages_images = true;
  provider.image_format = "qcow2";
  provider.diskimages[image->name] = image;
}

std::shared_ptr<driver::PoolConfig> MakePool(Dice& dice, std::string name, bool is_main, bool has_images) {
  auto pool = std::make_shared<driver::PoolConfig>();
  pool->name = PoolName(std::move(name));
  pool->priority = dice.Chance(0.2) ? 50 : 100;
  if (dice.Chance(0.6)) pool->max_servers = dice.Int(2, 6);
  if (!is_main && dice.Chance(0.05)) pool->max_servers = 0;
  if (dice.Chance(0.2)) pool->limits["cores"] = dice.Int(4, 16);
  if (dice.Chance(0.1)) {
    pool->ignore_provider_quota = true;
    pool->max_servers = std::min<double>(pool->max_servers, dice.Int(2, 6));
  }
  for (const Size& size : kSizes) {
    if (dice.Chance(0.75)) pool->Offer(MakeLabel(size));
  }
  if (pool->labels.empty()) pool->Offer(MakeLabel(kSizes[0]));
  if (has_images && dice.Chance(0.8)) OfferImage(*pool);
  return pool;
}

// The number of servers of any size that fit. A pool that ignores the quota and may have more would wait for
// ever for what its cloud refuses (launcher.md 15.3).
double ServersOf(const drivers::FakeLimits& limits) {
  constexpr int kMaxCores = 4;
  return std::min(limits.instances, std::floor(limits.cores / kMaxCores));
}

std::shared_ptr<const driver::ProviderConfig> MakeProvider(Dice& dice, int number, bool has_images) {
  auto provider = std::make_shared<drivers::FakeConfig>();
  provider->name = ProviderName(fmt::format("cloud{}", number));
  provider->driver = "fake";
  provider->cloud = "simulated";
  provider->max_concurrency = dice.Chance(0.3) ? dice.Int(1, 3) : -1;
  provider->launch_timeout = dice.Time(60, 300);
  provider->launch_retries = dice.Int(1, 3);
  driver::cloud::CloudImage image;
  image.name = "image";
  image.external_name = "Image";
  provider->cloud_images.emplace("image", image);
  drivers::FakeSimulation& cloud = provider->simulation;
  cloud.create_latency = dice.Time(0.5, 30);
  cloud.delete_latency = dice.Chance(0.5) ? dice.Time(0, 10) : Duration(0);
  cloud.seed = static_cast<std::uint64_t>(dice.Int(1, 1'000'000));
  cloud.images = {"Image"};
  cloud.flavors = {{"Small", 2048, 2}, {"Large", 8192, 4}};
  cloud.limits.instances = dice.Int(2, 8);
  cloud.limits.cores = dice.Int(8, 24);
  cloud.availability_zones.clear();
  for (int i = dice.Int(1, 2); i > 0; --i) cloud.availability_zones.push_back(fmt::format("az{}", i));
  for (int i = dice.Chance(0.3) ? 2 : 1; i > 0; --i) {
    auto pool = MakePool(dice, i == 1 ? "main" : "second", i == 1, has_images);
    if (pool->ignore_provider_quota) pool->max_servers = std::min(pool->max_servers, ServersOf(cloud.limits));
    provider->pools.emplace(pool->name, pool);
  }
  if (has_images) UploadImages(*provider);
  provider->fingerprint = provider->name.value;
  return provider;
}

RequestPlan MakeRequest(Dice& dice, Duration busy) {
  RequestPlan plan;
  plan.at = dice.Time(0, std::chrono::duration<double>(busy).count());
  plan.precedence = dice.OneOf<std::string>({"100", "200", "200", "200", "300"});
  for (int i = dice.OneOf<int>({1, 1, 1, 1, 2, 2, 3}); i > 0; --i) {
    plan.labels.emplace_back(dice.OneOf<std::string>({"small", "small", "other", "large"}));
  }
  if (dice.Chance(0.03)) plan.labels.emplace_back("unknown");
  if (dice.Chance(0.02)) plan.labels.clear();
  plan.reuse = dice.Chance(0.8);
  if (dice.Chance(0.4)) plan.tenant = dice.OneOf<std::string>({"t1", "t2"});
  if (dice.Chance(0.1)) plan.provider = ProviderName(fmt::format("cloud{}", dice.Int(1, 3)));
  plan.relative_priority = dice.Int(0, 3);
  if (dice.Chance(0.15)) plan.reprioritise_after = dice.Time(0, 30);
  if (dice.Chance(0.15)) plan.withdraw_after = dice.Time(0, 60);
  plan.pickup = dice.Chance(0.2) ? dice.Time(0, 20) : dice.Time(0, 0.5);
  plan.use = dice.Time(1, 40);
  plan.ending = RequestPlan::Ending::kUsed;
  if (dice.Chance(0.08)) plan.ending = RequestPlan::Ending::kHeld;
  if (dice.Chance(0.08)) plan.ending = RequestPlan::Ending::kAbandoned;
  if (dice.Chance(0.08)) plan.ending = RequestPlan::Ending::kUntaken;
  return plan;
}

Trouble MakeTrouble(Dice& dice) {
  Trouble trouble;
  int level = dice.Int(0, 9);  // none, little, much
  if (level >= 2) {
    trouble.pause = level >= 6 ? dice.Time(2, 10) : dice.Time(10, 40);
    trouble.zk_fault_rate = dice.Chance(0.3) ? 0.01 : 0;
    trouble.api_fault_rate = dice.Chance(0.5) ? 0.1 : 0;
  }
  trouble.api_latency = dice.Chance(0.7) ? dice.Time(0, 2) : Duration(0);
  return trouble;
}

std::shared_ptr<const driver::PoolConfig> CopyOf(const driver::PoolConfig& pool) {
  auto copy = std::make_shared<driver::PoolConfig>(pool);
  copy->labels.clear();
  for (const Size& size : kSizes) {
    if (pool.labels.contains(LabelName(size.label))) copy->Offer(MakeLabel(size));
  }
  if (pool.labels.contains(LabelName(kImageLabel))) OfferImage(*copy);
  return copy;
}

}  // namespace

Scenario::Scenario(std::uint64_t the_seed) : seed(the_seed) {
  Dice dice(seed);
  busy = dice.Time(60, 180);
  zk_latency = std::chrono::milliseconds(dice.OneOf<int>({0, 1, 5, 20, 100}));
  for (const Size& size : kSizes) {
    LabelName name(size.label);
    config::Label label{name, dice.Chance(0.25) ? dice.Int(1, 2) : 0, {}};
    if (label.min_ready == 0 && dice.Chance(0.1)) label.max_ready_age = dice.Time(20, 90);
    common.labels.emplace(name, label);
  }
  has_images = dice.Chance(0.4);
  if (has_images) {
    LabelName name(kImageLabel);
    common.labels.emplace(name, config::Label{name, dice.Chance(0.3) ? 1 : 0, {}});
    config::DiskImage& image = common.diskimages[ImageName(kImage)];
    image.name = ImageName(kImage);
    image.validation.emplace();
  }
  if (dice.Chance(0.4)) common.tenant_limits["t1"] = {{"instances", dice.Int(1, 3)}};
  const Manner manner = dice.OneOf<Manner>({Manner(), Ec2Like(), KubernetesLike()});
  for (int i = dice.Int(1, 3); i > 0; --i) {
    auto provider = MakeProvider(dice, i, has_images);
    manners[provider->name] = manner;
    clouds[provider->name] = dynamic_cast<const drivers::FakeConfig&>(*provider).simulation;
    providers[provider->name] = provider;
  }
  for (int i = dice.OneOf<int>({1, 1, 2, 2, 3}); i > 0; --i) {
    auto config = std::make_shared<driver::LoadedConfig>();
    config->common = common;
    for (const auto& [name, provider] : providers) {
      if (dice.Chance(0.6)) config->providers[name] = provider;
    }
    if (config->providers.empty()) config->providers.insert(*providers.begin());
    for (const auto& [name, provider] : config->providers) {
      for (const auto& [pool_name, pool] : provider->pools) pools[{name, pool_name}] = pool;
    }
    launchers.push_back(std::move(config));
  }
  for (int i = dice.Int(5, 20); i > 0; --i) {
    RequestPlan plan = MakeRequest(dice, busy);
    bool wants_image = has_images && !plan.labels.empty() && dice.Chance(0.4);
    if (wants_image) plan.labels.front() = LabelName(kImageLabel);
    // A tenant at its limit may have to wait for ever (launcher.md 20).
    bool is_limited = plan.tenant && common.tenant_limits.contains(*plan.tenant);
    if (is_limited && !plan.withdraw_after) plan.withdraw_after = dice.Time(60, 240);
    requests.push_back(std::move(plan));
  }
  std::ranges::sort(requests, {}, &RequestPlan::at);
  trouble = MakeTrouble(dice);
}

std::shared_ptr<const driver::LoadedConfig> Scenario::Changed(std::size_t launcher, Random& random) const {
  auto changed = std::make_shared<driver::LoadedConfig>(*launchers[launcher]);
  auto provider = changed->providers.begin();
  std::advance(provider, random.Below(changed->providers.size()));
  if (changed->providers.size() > 1 && random.Below(2) == 0) {
    changed->providers.erase(provider);
    return changed;
  }
  auto other =
      std::make_shared<drivers::FakeConfig>(dynamic_cast<const drivers::FakeConfig&>(*provider->second));
  if (random.Below(2) == 0) {
    // The provider is the same, and goes on; everything of the new configuration is at another address.
    for (auto& [name, pool] : other->pools) pool = CopyOf(*pool);
    changed->common.max_hold_age = std::chrono::hours(24 + random.Below(1000));
    provider->second = std::move(other);
    return changed;
  }
  other->fingerprint += fmt::format(" {}", random.Below(1000));
  provider->second = std::move(other);
  return changed;
}

Resources Scenario::NeedOf(const LabelName& label) {
  const Size& size = SizeOf(label);
  return {{"cores", size.cores}, {"instances", 1}, {"ram", size.ram}};
}

bool Scenario::IsServable(const std::vector<LabelName>& labels) const {
  Resources need;
  for (const LabelName& label : labels) Add(need, NeedOf(label));
  return std::ranges::any_of(pools, [&](const auto& entry) {
    const auto& [key, pool] = entry;
    bool has_all = std::ranges::all_of(
        labels, [&](const LabelName& label) { return entry.second->labels.contains(label); });
    const drivers::FakeLimits& cloud = clouds.at(key.provider).limits;
    Resources limit = {{"cores", cloud.cores}, {"instances", cloud.instances}, {"ram", cloud.ram}};
    return has_all && pool->max_servers > 0 && Fits(pool->Limit().resources(), {}, need) &&
           Fits(limit, {}, need);
  });
}

}  // namespace nodepool::sim
