#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/image_store.h"

namespace nodepool::driver::cloud {

// Whose an upload is, and what its file is called in the bucket: everything that it makes in the cloud is
// found by this. Builds and numbers come again in a copy of the tree, the attempt does not.
struct UploadMarks {
  std::string provider;
  std::string build;
  std::string upload;
  std::string attempt;  // random
  std::string key;      // of the object: "debian-0000000001-0123456789ab.raw"

  // Whether something with this metadata was made by the upload.
  bool AreOn(const std::map<std::string, std::string>& metadata) const;
  // By which the cloud recognises a repeated call; differs for each kind of call.
  std::string Token(const std::string& call) const;
};

// The upload's metadata as text; values that are not text are written as the Python implementation writes
// them ("True", "None").
std::map<std::string, std::string> TextMetadata(const ImageUploadParameters& upload);

// `format`: of the object, the end of its key. Error(kInvalid): the parameters name no build, upload and
// attempt.
UploadMarks MarksOf(const ImageUploadParameters& upload, const std::string& format);

// Whether the key is what an upload of the image calls its object: "<image>-<digits>-<hex
// digits>.<format>", or without the second number.
bool IsKeyOf(const std::string& key, const ImageName& image);

// The external id of an upload that has no image yet. A process that finds it in a record removes what the
// upload has left.
std::string UnfinishedId(const UploadMarks& marks);
// None: it is the id of an image.
std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider);

}  // namespace nodepool::driver::cloud
