#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/image_upload.h"

namespace nodepool::drivers::aws {

// Whose an upload is, and what its file is called in the bucket: everything that it makes in AWS is found by
// this. Builds and numbers come again in a copy of the tree, the attempt does not.
struct UploadMarks {
  std::string provider;
  std::string build;
  std::string upload;
  std::string attempt;  // random
  std::string key;      // of the object: "debian-0000000001-0123456789ab.raw"

  // Whether something with these tags was made by the upload.
  bool AreOn(const std::map<std::string, std::string>& tags) const;
  // By which AWS recognises a repeated call; differs for each kind of call.
  std::string Token(const std::string& call) const;
};

// Error(kInvalid): the parameters name no build, upload and attempt.
UploadMarks MarksOf(const driver::ImageUploadParameters& upload);

// The external id of an upload that has no image yet. A process that finds it in a record removes what the
// upload has left.
std::string UnfinishedId(const UploadMarks& marks);
// None: it is the id of an image.
std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider);

// The upload's metadata as EC2's tags. Values that are not text are written as the Python implementation
// writes them, and cut to what AWS permits.
std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload);
// The same for an object in S3, which has at most ten, of fewer characters; where they do not fit, only those
// that show whose it is.
std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags);

}  // namespace nodepool::drivers::aws
