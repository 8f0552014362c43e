#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/cloud/images/staged_images.h"
#include "drivers/gce/api/compute.h"

namespace nodepool::drivers::gce {

// How far an upload in parts has come.
struct UploadState {
  bool is_complete = false;
  std::uint64_t received = 0;  // bytes that the service keeps; of one that is not complete
  std::string md5;             // of a complete object, in base64; empty: the service does not say
};

// Calls Cloud Storage for one bucket (driver-gce.md 13). Errors as of Compute.
class Storage {
 public:
  // Everything outlives it.
  Storage(const driver::cloud::AdapterEnvironment& environment, net::HttpClient& http,
          const Endpoints& endpoints, const GceConfig& config, driver::cloud::api::Signer& signer,
          log::Logger logger);

  // Returns the upload's id, which ends by itself after a week.
  Task<std::string> BeginUpload(std::string name, std::map<std::string, std::string> metadata);
  // Sends bytes from `place` on; `total`: the object's size, with the last ones. Not repeated: after a fault
  // AskState() says what has arrived. ApiError with status 404 or 410: the upload has to begin again.
  Task<UploadState> PutPart(std::string upload, std::uint64_t place, std::string bytes,
                            std::optional<std::uint64_t> total);
  Task<UploadState> AskState(std::string upload);
  // One that does not exist is success.
  Task<> CancelUpload(std::string upload);

  Task<std::vector<driver::cloud::StagedFile>> List(std::string prefix);
  // One that does not exist is success.
  Task<> Delete(std::string name);

 private:
  driver::cloud::api::ApiRequest RequestFor(std::string method, std::string action, std::string path) const;
  driver::cloud::api::ApiRequest UploadRequest(std::string method, const std::string& upload) const;
  static UploadState ReadState(const net::HttpReply& reply);

  const Endpoints& endpoints_;
  std::string bucket_;
  driver::cloud::api::ApiClient client_;
  driver::cloud::api::ApiClient parts_;  // repeats nothing
};

}  // namespace nodepool::drivers::gce
