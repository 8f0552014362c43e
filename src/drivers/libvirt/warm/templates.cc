#include "drivers/libvirt/warm/templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/digest.h"
#include "base/text.h"
#include "drivers/libvirt/guest/agent.h"
#include "drivers/libvirt/guest/scripts.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

using driver::cloud::CreateParameters;

namespace {

constexpr const char* kSinceKey = "making_since";
constexpr Duration kScriptLimit = std::chrono::seconds(60);
constexpr Duration kBootPause = std::chrono::milliseconds(500);
constexpr Duration kSaveLimit = std::chrono::minutes(10);

CreateParameters ParametersOf(const Creation& machine) {
  CreateParameters parameters = machine.parameters;
  parameters.hostname = kWarmStart;
  std::int64_t now = static_cast<std::int64_t>(ToSeconds(machine.site.environment.loop.Now()));
  parameters.metadata = {{driver::cloud::kProviderKey, machine.site.config->name.str()},
                         {driver::cloud::kNodeKey, kWarmStart},
                         {kSinceKey, std::to_string(now)}};
  return parameters;
}

Task<> AwaitBoot(Creation& creation) {
  Loop& loop = creation.site.environment.loop;
  std::string script = HasBootedScript(creation.label.connection.connection_port);
  while (true) {
    GuestResult result =
        co_await RunInGuest(loop, creation.host.Use(), creation.id.uuid, script, kMostOfMaking);
    if (result.status == 0) co_return;
    co_await loop.SleepFor(kBootPause);
  }
}

Task<> Prepare(Creation& creation) {
  GuestResult result = co_await RunInGuest(creation.site.environment.loop, creation.host.Use(),
                                           creation.id.uuid, PrepareScript(), kScriptLimit);
  if (result.status == 0) co_return;
  throw Error(Verdict::kFail, "the machine cannot be prepared: " + Excerpt(result.output, 300));
}

Task<> Make(Creation& creation) {
  DomainDisks disks = co_await MakeDisks(creation);
  co_await Boot(creation, std::move(disks));
  SteadyTime deadline = creation.site.environment.loop.SteadyNow() + kMostOfMaking;
  co_await WithDeadline(creation.site.environment.loop, deadline, "the boot of the machine to be saved",
                        AwaitBoot(creation));
  co_await Prepare(creation);
  std::string memory = creation.VolumeName(kMemoryPart);
  NewVolume volume{.name = memory, .is_secret = true};
  co_await MakeVolume(creation, std::move(volume));
  co_await creation.host.Use().SaveDomain(creation.id.uuid, memory, kSaveLimit);
  creation.host.Unwatch(creation.id.uuid);
}

}  // namespace

Task<> MakeTemplate(Creation& machine, const MachineId& id) {
  Loop& loop = machine.site.environment.loop;
  SteadyTime start = loop.SteadyNow();
  CreateParameters parameters = ParametersOf(machine);
  Creation creation{machine.site, machine.host, id, machine.label, parameters, machine.need, std::nullopt};
  auto remove = [&](const Failure&) {
    return RemoveMachine(machine.site.hosts, machine.site.config->name.str(), id);
  };
  co_await RemoveMachine(machine.site.hosts, machine.site.config->name.str(), id);
  co_await OnFailure(Make(creation), remove);
  machine.site.logger.Info("The memory of a booted machine of label {} is saved on host {} after {:.1f} s",
                           machine.label.name, machine.host.name(),
                           std::chrono::duration<double>(loop.SteadyNow() - start).count());
}

std::int64_t MakingSince(const DomainInfo& domain) {
  const std::string text = FindOrEmpty(domain.metadata, kSinceKey);
  std::int64_t seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return FindOrEmpty(domain.metadata, driver::cloud::kNodeKey) == kWarmStart ? seconds : 0;
}

namespace {

// To be raised when templates are made otherwise.
constexpr int kTemplateVersion = 2;

// The description of a machine without what makes it differ from others.
std::string SharedDescription(const Creation& creation, const BootImage& image) {
  NewDomain domain = DescribeOnHost(creation, DomainDisks{.image = image.file});
  domain.name.clear();
  domain.uuid.clear();
  domain.metadata.clear();
  domain.mac.clear();
  return DomainXml(domain);
}

// The form of RFC 9562's version 8, for values that an application makes up.
std::string AsUuid(const std::string& hex) {
  return fmt::format("{}-{}-8{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

}  // namespace

MachineId TemplateFor(const Creation& creation, const BootImage& image) {
  std::vector<int> seeds;
  for (SeedFormat format : creation.label.seeds) seeds.push_back(static_cast<int>(format));
  std::string shape = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kTemplateVersion,
                                  creation.site.config->name.str(), SharedDescription(creation, image),
                                  image.modified, creation.label.disk.value_or(0), fmt::join(seeds, ","),
                                  fmt::join(KeysFor(creation), "\n"), creation.label.userdata.value_or(""));
  return {creation.host.name(), AsUuid(Sha256Hex(shape))};
}

bool IsOfTemplate(const MachineVolume& volume) { return volume.node == kWarmStart; }

namespace {

constexpr std::chrono::hours kUnused{24};

using Volumes = std::vector<VolumeInfo>;

// The volumes of each template, by what their names have of its UUID.
std::map<std::string, Volumes> TemplatesIn(const Volumes& volumes) {
  std::map<std::string, Volumes> templates;
  for (const VolumeInfo& volume : volumes) {
    std::optional<MachineVolume> ours = ParseMachineVolume(volume.name);
    if (ours && IsOfTemplate(*ours)) templates[ours->provider + "/" + ours->machine].push_back(volume);
  }
  return templates;
}

bool HasUsers(const Volumes& of_template, const Volumes& all) {
  return std::ranges::any_of(all, [&](const VolumeInfo& volume) {
    return std::ranges::find(of_template, volume.backing_path, &VolumeInfo::path) != of_template.end();
  });
}

bool IsUnused(const Volumes& of_template, WallTime now) {
  auto newest = std::ranges::max_element(of_template, {}, &VolumeInfo::modified);
  return now - FromSeconds(static_cast<double>(newest->modified)) > kUnused;
}

Task<> Delete(Host& host, Volumes of_template) {
  for (const VolumeInfo& volume : of_template) co_await host.Use().DeleteVolume(volume.name);
}

}  // namespace

Task<> DeleteTemplatesOn(Host& host, std::string image) {
  Volumes volumes = co_await host.Use().Volumes();
  auto found = std::ranges::find(volumes, image, &VolumeInfo::name);
  if (found == volumes.end()) co_return;
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_on_image =
        std::ranges::find(of_template, found->path, &VolumeInfo::backing_path) != of_template.end();
    if (is_on_image && !HasUsers(of_template, volumes)) co_await Delete(host, std::move(of_template));
  }
}

Task<> DeleteUnusedTemplates(WallTime now, const std::string& provider, Host& host, const Volumes& volumes,
                             const std::vector<DomainInfo>& domains) {
  for (const DomainInfo& domain : domains) {
    std::int64_t since = MakingSince(domain);
    bool is_left = since != 0 && now - FromSeconds(static_cast<double>(since)) > kMostOfMaking;
    if (is_left) co_await host.Use().DestroyDomain(domain.uuid);
  }
  for (auto& [id, of_template] : TemplatesIn(volumes)) {
    bool is_ours = id.starts_with(provider + "/");
    if (is_ours && IsUnused(of_template, now) && !HasUsers(of_template, volumes)) {
      co_await Delete(host, std::move(of_template));
    }
  }
}

}  // namespace nodepool::drivers::libvirt
