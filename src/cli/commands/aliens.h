#pragma once

#include <optional>

#include "cli/show_listing.h"

namespace nodepool::cli {

// Lists machines in the clouds of all providers, or of one, that no node of that provider names
// (operations.md 13.4). `only_marked`: only those with Nodepool's metadata (D-68). A cloud that cannot be
// queried is a warning.
ListingCommand AlienListing(std::optional<ProviderName> provider, bool only_marked);

// Lists images that Nodepool made and that are not ready uploads (operations.md 5.7).
ListingCommand AlienImageListing(std::optional<ProviderName> provider);

}  // namespace nodepool::cli
