#pragma once

#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// The kinds of resources that uploads make, as metrics call them.
inline constexpr const char* kImageKind = "ami";
inline constexpr const char* kSnapshotKind = "snapshot";
inline constexpr const char* kObjectKind = "object";

// Adds this provider's images, snapshots and objects to what is searched for leaks (driver-aws.md 17), images
// before their snapshots. First gives untagged results of import tasks the tags of their task. What cannot be
// read is logged and left out.
Task<> AppendMarkedImages(AwsCloud& cloud, std::vector<driver::cloud::Resource>& resources);

// Aborts uploads in parts with names of this provider's images that began more than a day ago: lists of
// objects do not show them, and they have no tags.
Task<> AbortOldUploads(AwsCloud& cloud);

// Images that any Nodepool has uploaded to the account, for operators.
Task<std::vector<driver::ListedImage>> ListUploadedImages(AwsCloud& cloud);

}  // namespace nodepool::drivers::aws
