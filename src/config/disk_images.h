#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "config/config.h"
#include "config/schema/section.h"

namespace nodepool::config {

// What is wrong with the name of an image that is to name files, znodes and arguments of commands; nullopt
// for a good one. The Python implementation takes every name, so the file is loaded all the same, and no
// image of such a name is built.
std::optional<std::string_view> ImageNameFault(const ImageName& name);

// The setting `diskimages` of the main file.
Setting DiskImagesSetting();
// The images of `diskimages` with everything inherited; abstract ones are left out
// (configuration.md 7.2). Throws Error(kInvalid): unknown or circular parents, unusable values.
std::map<ImageName, DiskImage> ReadDiskImages(const Section& root);

// The images in the order of the file.
std::vector<const DiskImage*> AsListed(const std::map<ImageName, DiskImage>& images);

// The settings whose change means that an image has changed (configuration.md 7.5), as one text.
// Holds secrets: for comparing only.
std::string Fingerprint(const DiskImage& image);

// The content of a value with the keys of mappings sorted; equal texts mean equal content. Holds
// any secrets that the value holds.
std::string CanonicalJson(const Value& value);

}  // namespace nodepool::config
