#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "base/clock.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// Called with the id that a cloud has given to an image, before the upload is complete; awaited.
using AnnounceImage = std::function<Task<>(std::string external_id)>;

// How far an upload has come.
struct UploadProgress {
  std::string step;  // what is being done: "sending the file"
  int percent = 0;   // of the step
};

// The parameters of an image's upload to a cloud (builder.md 11).
struct ImageUploadParameters {
  std::shared_ptr<const ProviderDiskImage> image;
  std::string name;              // in the cloud
  std::string filename;          // the local file
  std::string format;            // of the file
  boost::json::object metadata;  // to be stored with the image; shows whose it is
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
  Duration timeout = std::chrono::seconds(3600);  // for all of it
  // Call once the image has an id by which it can be deleted, so that another process can delete it should
  // this one die. Not needed for a cloud that reports the id only at the end.
  AnnounceImage announce = [](std::string) -> Task<> { co_return; };
  // Call it as often as there is news; the builder logs what operators need, and writes it into the upload's
  // record.
  std::function<void(const UploadProgress&)> report = [](const UploadProgress&) {};
};

// A provider's images, for the builder.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  virtual const ProviderConfig& config() const = 0;
  // Uploads a local file to the cloud and ends with the image's external id when machines can be made from it
  // (builder.md 11). The provider's name is added to the metadata.
  virtual Task<std::string> UploadImage(ImageUploadParameters upload) = 0;
  // Ends when the image is gone; one that does not exist is success.
  virtual Task<> DeleteImage(std::string external_id) = 0;
  // Ends when the uploads and deletions under way have ended.
  virtual Task<> Stop() = 0;
};

}  // namespace nodepool::driver
