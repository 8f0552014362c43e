#include "base/version.h"

namespace nodepool {

std::string_view Version() { return NODEPOOL_VERSION; }

}  // namespace nodepool
