#pragma once

#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// The host that a libvirt URI names, an address or a name; 127.0.0.1 where it names none.
std::string AddressOf(std::string_view uri);

// Whether the URI is that of a local user's own libvirt, which has no rights of the system.
bool IsSession(std::string_view uri);

// Error(kInvalid): the URI is that of a user's own libvirt and the user is root, who has none beside the
// system's.
void CheckRights(std::string_view uri, bool is_root);

// Where the user who runs this program has data: $XDG_DATA_HOME, else ~/.local/share.
std::string UserDataFolder();

}  // namespace nodepool::drivers::libvirt
