#pragma once

#include <map>
#include <string>

#include "driver/cloud/images/upload_marks.h"

namespace nodepool::drivers::aws {

using driver::cloud::IsKeyOf;
using driver::cloud::MarksOf;
using driver::cloud::ReadUnfinishedId;
using driver::cloud::UnfinishedId;
using driver::cloud::UploadMarks;

// The upload's metadata as EC2's tags, cut to what AWS permits.
std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload);
// The same for an object in S3, which has at most ten, of fewer characters; where they do not fit, only those
// that show whose it is.
std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags);

}  // namespace nodepool::drivers::aws
