#include "cli/unknown_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace nodepool::cli {
namespace {

using listing::Listing;

std::vector<std::string> ProvidersIn(const driver::LoadedConfig& config) {
  std::vector<std::string> names;
  for (const config::ProviderSection& section : config.common.providers) names.push_back(section.name.value);
  for (const auto& [name, provider] : config.providers) names.push_back(name.value);
  return names;
}

template <class Map>
std::vector<std::string> KeysIn(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name.value);
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string Unknown(const std::string& name, const std::vector<std::string>& known) {
  std::optional<std::string> nearest = NearestSpelling(name, known);
  return fmt::format("{} is not configured, and there are no records of it{}", Excerpt(name),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

std::vector<std::string> Configured(const driver::LoadedConfig& config, listing::Kind kind) {
  return kind == listing::Kind::kProvider ? ProvidersIn(config) : KeysIn(config.common.labels);
}

bool IsInRows(const Listing& listing, listing::Kind kind, const std::string& word) {
  std::ptrdiff_t place = Find(listing.columns, kind) - listing.columns.data();
  return std::ranges::any_of(listing.rows, [&](const std::vector<Cell>& row) {
    return listing::HasOneOf(row[static_cast<std::size_t>(place)], {word});
  });
}

}  // namespace

bool IsConfigured(const driver::LoadedConfig& config, const ProviderName& provider) {
  return Has(ProvidersIn(config), provider.value);
}

std::string UnknownProvider(const driver::LoadedConfig& config, const ProviderName& provider) {
  return Unknown(provider.value, ProvidersIn(config));
}

std::string UnknownImage(const driver::LoadedConfig& config, const ImageName& image) {
  return Unknown(image.value, KeysIn(config.common.diskimages));
}

std::set<std::string> UnconfiguredWords(const driver::LoadedConfig& config,
                                        const listing::RowFilter& filter) {
  std::set<std::string> unconfigured;
  for (const auto& [kind, words] : filter) {
    if (kind == listing::Kind::kState) continue;
    std::vector<std::string> configured = Configured(config, kind);
    std::ranges::copy_if(words, std::inserter(unconfigured, unconfigured.end()),
                         [&](const std::string& word) { return !Has(configured, word); });
  }
  return unconfigured;
}

std::vector<std::string> UnknownWords(const driver::LoadedConfig& config, const Listing& listing,
                                      const listing::RowFilter& filter) {
  std::vector<std::string> unknown;
  for (const auto& [kind, words] : filter) {
    if (kind == listing::Kind::kState) continue;
    std::vector<std::string> configured = Configured(config, kind);
    for (const std::string& word : words) {
      bool is_known = Has(configured, word) || IsInRows(listing, kind, word);
      if (!is_known) unknown.push_back(Unknown(word, configured));
    }
  }
  return unknown;
}

}  // namespace nodepool::cli
