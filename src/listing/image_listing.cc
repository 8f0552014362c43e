#include "listing/image_listing.h"

#include "model/cell.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

constexpr std::string_view kPaused = "paused";

json::value UnixTime(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

bool HasBuilds(const store::ImageCache& images, const ImageName& image) {
  auto first = images.builds().lower_bound({image, BuildId()});
  return first != images.builds().end() && first->first.image == image;
}

}  // namespace

std::vector<Column> BuildColumns() {
  std::vector<std::string_view> states = ImageStateWords();
  states.push_back(kPaused);
  return {{"id", "ID"},
          {"image", "Image"},
          {"builder", "Builder"},
          {"formats", "Formats"},
          {"state", "State", Kind::kState, std::move(states)},
          {"age", "Age", Kind::kTime}};
}

std::vector<Column> UploadColumns() {
  return {{"id", "Build ID"},
          {"upload_id", "Upload ID"},
          {"provider", "Provider", Kind::kProvider},
          {"image", "Image"},
          {"external_name", "Provider Image Name"},
          {"external_id", "Provider Image ID"},
          {"state", "State", Kind::kState, ImageStateWords()},
          {"age", "Age", Kind::kTime}};
}

std::vector<Column> ImageStatusColumns() {
  return {{"image", "Image"},
          {"paused", "Paused"},
          {"build_request", "Build Request"},
          {"build_request_age", "Build Request Age", Kind::kTime}};
}

Listing ListBuilds(const store::ImageCache& images) {
  Listing listing{BuildColumns(), {}};
  for (const auto& [key, build] : images.builds()) {
    json::array formats(build.record.formats.begin(), build.record.formats.end());
    bool is_paused = images.paused().contains(key.image);
    Cell state = is_paused ? Cell::OfText(kPaused) : StateCell(build.record.state);
    listing.rows.push_back({key.str(), key.image.value, TextCell(build.record.builder), std::move(formats),
                            std::move(state), UnixTime(build.record.state_time)});
  }
  return listing;
}

Listing ListUploads(const store::ImageCache& images) {
  Listing listing{UploadColumns(), {}};
  for (const auto& [key, upload] : images.uploads()) {
    listing.rows.push_back({key.build.build.value, key.upload.value, key.provider.value,
                            key.build.image.value, TextCell(upload.record.external_name),
                            TextCell(upload.record.external_id), StateCell(upload.record.state),
                            UnixTime(upload.record.state_time)});
  }
  return listing;
}

Listing ListImageStatus(const store::ImageCache& images) {
  Listing listing{ImageStatusColumns(), {}};
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
