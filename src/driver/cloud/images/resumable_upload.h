#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "base/log/logging.h"
#include "base/sparse_file.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// How far an upload has come.
struct UploadState {
  bool is_complete = false;
  std::uint64_t received = 0;  // bytes that the service keeps; of one that is not complete
  std::string md5;             // of a complete object, in base64; empty: the service does not say
};

// A service that takes an object in parts, in order, keeps what has arrived and says how much that is.
class ResumableUploads {
 public:
  virtual ~ResumableUploads() = default;

  // Returns the upload's id.
  virtual Task<std::string> BeginUpload(std::string name, std::map<std::string, std::string> metadata) = 0;
  // Sends bytes from `place` on; `total`: the object's size, with the last ones. Not repeated: after a fault
  // AskState() says what has arrived. ApiError with status 404 or 410: the upload has to begin again.
  virtual Task<UploadState> PutPart(std::string upload, std::uint64_t place, std::string bytes,
                                    std::optional<std::uint64_t> total) = 0;
  virtual Task<UploadState> AskState(std::string upload) = 0;
  // One that does not exist is success.
  virtual Task<> CancelUpload(std::string upload) = 0;
};

// What is put.
struct ResumableObject {
  std::string service;  // where, for messages: "Cloud Storage"
  std::string name;
  std::map<std::string, std::string> metadata;
  // Begins with its content; called again if the service loses the upload.
  std::function<std::shared_ptr<ByteSource>()> open;
};

// Makes the object in parts of 8 MiB, of which one is in memory; after a fault it goes on where the service
// is. What a failure leaves is cancelled. `sent`: called with the place of the source. Errors: those of the
// service, if they do not pass in about five minutes; Error(kFail): the object is not what was sent, or the
// service has lost the upload three times. `service` outlives it.
Task<> PutResumable(DriverEnvironment environment, log::Logger logger, ResumableUploads& service,
                    ResumableObject object, std::function<void(std::uint64_t)> sent);

}  // namespace nodepool::driver::cloud
