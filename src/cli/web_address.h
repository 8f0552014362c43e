#pragma once

#include <string>

#include "config/config.h"

namespace nodepool::cli {

// The URL, ending in "/", at which the host `own` reaches the web server of the launcher on `hostname`, whose
// `webapp` is supposed to be that of our configuration. A server of this host that listens on one address
// is reached there, not at the host's name; unless it has a certificate, which names the host.
std::string WebAddress(const config::WebAppSettings& web, const std::string& hostname,
                       const std::string& own);

}  // namespace nodepool::cli
