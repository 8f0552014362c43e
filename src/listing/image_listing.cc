#include "listing/image_listing.h"

#include "model/json_cells.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

json::value StateText(const std::optional<ImageState>& state) {
  return state ? json::value(ToString(*state)) : json::value();
}

json::value UnixTime(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

bool HasBuilds(const store::ImageCache& images, const ImageName& image) {
  auto first = images.builds().lower_bound({image, BuildId()});
  return first != images.builds().end() && first->first.image == image;
}

}  // namespace

Listing ListBuilds(const store::ImageCache& images) {
  Listing listing{{{"id", "ID"},
                   {"image", "Image"},
                   {"builder", "Builder"},
                   {"formats", "Formats"},
                   {"state", "State"},
                   {"age", "Age"}},
                  {}};
  for (const auto& [key, build] : images.builds()) {
    json::array formats(build.record.formats.begin(), build.record.formats.end());
    json::value state =
        images.paused().contains(key.image) ? json::value("paused") : StateText(build.record.state);
    listing.rows.push_back({key.str(), key.image.value, JsonText(build.record.builder), std::move(formats),
                            std::move(state), UnixTime(build.record.state_time)});
  }
  return listing;
}

Listing ListUploads(const store::ImageCache& images) {
  Listing listing{{{"id", "Build ID"},
                   {"upload_id", "Upload ID"},
                   {"provider", "Provider"},
                   {"image", "Image"},
                   {"external_name", "Provider Image Name"},
                   {"external_id", "Provider Image ID"},
                   {"state", "State"},
                   {"age", "Age"}},
                  {}};
  for (const auto& [key, upload] : images.uploads()) {
    listing.rows.push_back({key.build.build.value, key.upload.value, key.provider.value,
                            key.build.image.value, JsonText(upload.record.external_name),
                            JsonText(upload.record.external_id), StateText(upload.record.state),
                            UnixTime(upload.record.state_time)});
  }
  return listing;
}

Listing ListImageStatus(const store::ImageCache& images) {
  Listing listing{{{"image", "Image"},
                   {"paused", "Paused"},
                   {"build_request", "Build Request"},
                   {"build_request_age", "Build Request Age"}},
                  {}};
  for (const ImageName& image : images.images()) {
    json::value request, age;
    if (auto found = images.build_requests().find(image); found != images.build_requests().end()) {
      bool is_building = images.IsBuildLocked(image) && HasBuilds(images, image);
      request = is_building ? "building" : "pending";
      age = UnixTime(found->second);
    }
    listing.rows.push_back(
        {image.value, images.paused().contains(image), std::move(request), std::move(age)});
  }
  return listing;
}

}  // namespace nodepool::listing
