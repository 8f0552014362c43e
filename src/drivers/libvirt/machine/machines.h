#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "drivers/libvirt/names.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/seed.h"

namespace nodepool::drivers::libvirt {

// Chooses a host, makes the machine's volumes there, starts it and waits for its address (driver-libvirt.md
// 6). Its id is stored before anything is made; what a failure leaves is removed by DeleteMachine.
Task<driver::cloud::Instance> CreateMachine(Site& site, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// A machine that is being made: its host is chosen and its id stored.
struct Creation {
  Site& site;
  Host& host;
  MachineId id;
  const LibvirtLabel& label;
  const driver::cloud::CreateParameters& parameters;
  Need need;
  std::optional<SshKey> host_key;  // that the machine gets; none: it makes its own

  const MachineNetwork& network() const { return label.network ? *label.network : host.config().network; }

  std::string VolumeName(const char* part) const {
    std::string node = FindOrEmpty(parameters.metadata, driver::cloud::kNodeKey);
    return NameOf(MachineVolume{site.config->name.str(), std::move(node), id.digits(), part});
  }

  // Awaits step(hypervisor), a call that makes something of the machine and may be carried out twice: again
  // where the connection was lost meanwhile; to its end although this task is cancelled.
  template <class Step>
  auto Do(Step step) {
    auto run = [this, step = std::move(step)](Hypervisor& hypervisor) {
      return host.work().Run(id.uuid, step(hypervisor));
    };
    return host.AcrossLosses(std::move(run));
  }
};

// Active domains of all hosts, also foreign ones. Of a host that cannot be used now those of its last list.
Task<std::vector<driver::cloud::Instance>> ListMachines(Site& site);

// Everything on the usable hosts that has our marks: domains; volumes of machines without a domain; uploaded
// images.
Task<std::vector<driver::cloud::Resource>> ListMarked(Site& site);

// Deletes what ListMarked listed. If it is gone already, that is success.
Task<> DeleteMarked(Site& site, driver::cloud::Resource resource);

// Which of these external ids name machines that no longer run. A host that cannot be used now has lost none.
Task<std::vector<boost::json::value>> MissingMachines(Hosts& hosts, std::vector<boost::json::value> ids);

// Ends the machine at once and deletes its volumes, without regard to what the process notes about it.
Task<> RemoveMachine(const Hosts& hosts, std::string provider, MachineId id);

// Ends the machine at once and deletes its volumes, at any stage of its creation and any number of times.
// Waits for what a cancelled creation has under way. Error(kRetry): its host cannot be reached.
Task<> DeleteMachine(Site& site, MachineId id);

// The names of a machine's volumes that the host has.
Task<std::vector<std::string>> FindVolumes(const Hosts& hosts, std::string provider, MachineId id);

// The end of what the machine has written to its serial console, without what a terminal would obey; a
// sentence where it has written nothing. kNotFound: there is no such machine. The console is asked for when a
// machine could not be reached, so its host notes that.
Task<std::string> ReadConsole(Hosts& hosts, std::string provider, MachineId id);

// The bytes as lines of text: escape sequences are left out, other bytes that are not text replaced.
std::string ConsoleText(const std::string& bytes);

// The last lines of the text, for a message.
std::string LastLines(const std::string& text);

}  // namespace nodepool::drivers::libvirt
