#include "cli/node_claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::cli {

std::string BootingText(std::size_t ready, std::size_t wanted) {
  return fmt::format("booting, {} of {} ready", ready, wanted);
}

std::string WaitingText(std::string begin, std::string waits) {
  return waits.empty() ? std::move(begin) : begin + "; " + Visible(waits);
}

}  // namespace nodepool::cli
