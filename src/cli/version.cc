#include "cli/version.h"

namespace nodepool::cli {

std::string_view Version() { return NODEPOOL_VERSION; }

}  // namespace nodepool::cli
