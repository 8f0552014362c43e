#pragma once

#include <string>

namespace nodepool {

// Whether a host name or an address is one of the host that this program runs on: of its loopback interface
// or another one, or its own name. A name is not looked up.
bool IsThisHost(const std::string& host);

}  // namespace nodepool
