#pragma once

#include <map>
#include <optional>
#include <string>

#include "async/gate.h"
#include "async/task.h"
#include "base/clock.h"

namespace nodepool::drivers::libvirt {

struct Creation;

// What this process knows of a template.
struct WarmTemplate {
  Gate gate{1};  // one machine at a time makes it, or is restored from it
  SteadyTime retry_at{};
};

using WarmTemplates = std::map<std::string, WarmTemplate>;  // by MachineId::ToText

// Starts the machine from the saved memory of its label's template, and makes that first where its host has
// none (driver-libvirt.md 6.2). Returns its address; the machine then has its own identity, among it
// creation.host_key. nullopt: that is not possible now, the log says why; nothing of the machine is left on
// the host, and it has to be booted.
Task<std::optional<std::string>> StartWarm(Creation& creation);

}  // namespace nodepool::drivers::libvirt
