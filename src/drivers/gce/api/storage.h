#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/cloud/images/resumable_upload.h"
#include "driver/cloud/images/staged_images.h"
#include "drivers/gce/api/services.h"

namespace nodepool::drivers::gce {

// Calls Cloud Storage for one bucket (driver-gce.md 13). Errors as of Compute.
class Storage : public driver::cloud::ResumableUploads {
 public:
  using UploadState = driver::cloud::UploadState;

  // Everything outlives it.
  Storage(const driver::cloud::AdapterEnvironment& environment, net::HttpClient& http,
          const Endpoints& endpoints, const GceConfig& config, driver::cloud::api::Signer& signer,
          log::Logger logger);

  // Uploads of archives, which end by themselves after a week.
  Task<std::string> BeginUpload(std::string name, std::map<std::string, std::string> metadata) override;
  Task<UploadState> PutPart(std::string upload, std::uint64_t place, std::string bytes,
                            std::optional<std::uint64_t> total) override;
  Task<UploadState> AskState(std::string upload) override;
  Task<> CancelUpload(std::string upload) override;

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
