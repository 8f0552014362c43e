#pragma once

#include <string>

#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// The end of what the machine has written to its serial console, without what a terminal would obey; a
// sentence where it has written nothing. kNotFound: there is no such machine. The console is asked for when a
// machine could not be reached, so its host notes that.
Task<std::string> ReadConsole(Site& site, MachineId id);

// The bytes as lines of text: escape sequences are left out, other bytes that are not text replaced.
std::string ConsoleText(const std::string& bytes);

// The last lines of the text, for a message.
std::string LastLines(const std::string& text);

}  // namespace nodepool::drivers::libvirt
