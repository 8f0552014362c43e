#include "drivers/libvirt/warm/make_template.h"

#include <fmt/format.h>

#include <charconv>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/text.h"
#include "drivers/libvirt/guest/agent.h"
#include "drivers/libvirt/guest/scripts.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/delete_machine.h"
#include "drivers/libvirt/machine/make_disks.h"

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
  auto remove = [&](const Failure&) { return RemoveMachine(machine.site, id); };
  co_await RemoveMachine(machine.site, id);
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

}  // namespace nodepool::drivers::libvirt
