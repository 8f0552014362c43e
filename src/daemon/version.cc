#include "daemon/version.h"

namespace nodepool::daemon {

std::string_view Version() { return NODEPOOL_VERSION; }

}  // namespace nodepool::daemon
