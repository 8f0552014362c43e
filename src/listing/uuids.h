#pragma once

#include <string>
#include <string_view>

namespace nodepool::listing {

// The text with the first eight digits of each UUID in it, with or without dashes, and a `…` in place of the
// rest: "vm-PoolWorker.cloud-main-986e7f26…".
std::string ShortenUuids(std::string_view text);

}  // namespace nodepool::listing
