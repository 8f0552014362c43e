#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/show_listing.h"

// Names of providers, images and labels on a command line that nobody knows, mostly misspelt ones.
namespace nodepool::cli {

bool IsConfigured(const driver::LoadedConfig& config, const ProviderName& provider);

// "nope is not configured, and there are no records of it", and the configured name that was meant.
std::string UnknownProvider(const driver::LoadedConfig& config, const ProviderName& provider);
std::string UnknownImage(const driver::LoadedConfig& config, const ImageName& image);

// The providers and labels of the filter that are not configured.
std::set<std::string> UnconfiguredWords(const driver::LoadedConfig& config, const listing::RowFilter& filter);

// "nope is not configured, and there are no records of it", for each provider and label of the filter that is
// neither configured nor in a row of the listing.
std::vector<std::string> UnknownWords(const driver::LoadedConfig& config, const listing::Listing& listing,
                                      const listing::RowFilter& filter);

}  // namespace nodepool::cli
