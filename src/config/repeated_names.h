#pragma once

#include <string>
#include <vector>

#include "config/yaml/value.h"

namespace nodepool::config {

// An entry of a list whose name an earlier entry of the list has as well: the later one counts
// (configuration.md 9.6).
struct RepeatedName {
  std::string what;  // "pool main of provider a"
  Position before;
  Position again;

  // "line 9, column 3: provider a is defined again; what line 4 defines has no effect".
  std::string ToString() const;
};

// Labels and providers; of each provider the disk images, cloud images and pools; of each pool the labels.
// Whatever is no list of mappings with names is skipped.
std::vector<RepeatedName> RepeatedNames(const Value& document);
// The top-level disk images, of which the validator speaks in the Python implementation's words.
std::vector<RepeatedName> RepeatedDiskImages(const Value& document);

}  // namespace nodepool::config
