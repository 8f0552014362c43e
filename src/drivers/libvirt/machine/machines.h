#pragma once

#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

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
