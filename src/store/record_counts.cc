#include "store/record_counts.h"

#include "store/paths.h"

namespace nodepool::store {
namespace {

bool IsBelow(std::string_view root, std::string_view path) {
  return path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/';
}

}  // namespace

void RecordCounts::Add(std::string_view path) {
  if (IsBelow(paths::kNodes, path)) {
    if (paths::ParseBelowNodes(path).part == paths::BelowNodes::Part::kRecord) ++nodes;
  } else if (IsBelow(paths::kRequests, path)) {
    if (paths::ParseRequest(path)) ++requests;
  } else if (IsBelow(paths::kImages, path)) {
    paths::BelowImages place = paths::ParseBelowImages(path);
    if (!place.key.build.image.empty()) images.insert(place.key.build.image);
    if (place.part == paths::BelowImages::Part::kBuild) ++builds;
    if (place.part == paths::BelowImages::Part::kUpload) ++uploads;
  }
}

}  // namespace nodepool::store
