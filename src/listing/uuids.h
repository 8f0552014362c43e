#pragma once

#include <string>
#include <string_view>

namespace nodepool::listing {

// The text with each UUID, with or without dashes, shortened to its first eight digits and `…`:
// "vm-PoolWorker.cloud-main-986e7f26…".
std::string ShortenUuids(std::string_view text);

}  // namespace nodepool::listing
