#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// Everything that bringing an image into a cloud needs (builder.md 11).
struct ImageUploadParameters {
  std::shared_ptr<const ProviderDiskImage> image;
  std::string name;              // in the cloud
  std::string filename;          // the local file
  std::string format;            // of the file
  boost::json::object metadata;  // to be stored with the image; tells whose it is
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
  Duration timeout = std::chrono::seconds(3600);  // for all of it
};

}  // namespace nodepool::driver
