#include "listing/image_listing.h"

#include "model/cell.h"

namespace nodepool::listing {
namespace {

namespace json = boost::json;

constexpr std::string_view kPaused = "paused";

bool HasBuilds(const store::ImageCache& images, const ImageName& image) {
  auto first = images.builds().lower_bound({image, BuildId()});
  return first != images.builds().end() && first->first.image == image;
}

}  // namespace

std::vector<Column> BuildColumns() {
  std::vector<std::string_view> states = ImageStateWords();
  states.push_back(kPaused);
  return {{.key = "id", .title = "ID", .fit = {Importance::kAlways}},
          {.key = "image", .title = "Image", .fit = {Importance::kLow, 12}},
          {.key = "builder", .title = "Builder", .fit = {Importance::kMedium, 12}},
          {.key = "formats", .title = "Formats", .fit = {Importance::kLow}},
          {.key = "state",
           .title = "State",
           .kind = Kind::kState,
           .words = std::move(states),
           .fit = {Importance::kHigh}},
          {.key = "age",
           .title = "Age",
           .kind = Kind::kTime,
           .fit = {Importance::kHigh},
           .since = "state_since"}};
}

std::vector<Column> UploadColumns(UploadDetail detail) {
  std::vector<Column> columns = {
      {.key = "id", .title = "Build ID", .fit = {Importance::kMedium, 9}},
      {.key = "upload_id", .title = "Upload ID", .fit = {Importance::kAlways}},
      {.key = "provider", .title = "Provider", .kind = Kind::kProvider, .fit = kName},
      {.key = "image", .title = "Image", .fit = kName},
      {.key = "external_name", .title = "Provider Image Name", .fit = {Importance::kLow, 12}},
      {.key = "external_id", .title = "Provider Image ID", .fit = kLongId},
      {.key = "state",
       .title = "State",
       .kind = Kind::kState,
       .words = ImageStateWords(),
       .fit = {Importance::kHigh}},
      {.key = "age",
       .title = "Age",
       .kind = Kind::kTime,
       .fit = {Importance::kHigh},
       .since = "state_since"}};
  if (detail == UploadDetail::kDetail) {
    columns.push_back({.key = "format", .title = "Format", .fit = {Importance::kLow}});
    columns.push_back({.key = "progress", .title = "Progress", .fit = kSentence});
  }
  return columns;
}

std::vector<Column> ImageStatusColumns() {
  return {{.key = "image", .title = "Image", .fit = {Importance::kAlways}},
          {.key = "paused", .title = "Paused", .fit = {Importance::kHigh}},
          {.key = "build_request", .title = "Build Request"},
          {.key = "build_request_age",
           .title = "Build Request Age",
           .kind = Kind::kTime,
           .fit = {Importance::kLow},
           .since = "build_request_since"}};
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

Listing ListUploads(const store::ImageCache& images, UploadDetail detail) {
  Listing listing{UploadColumns(detail), {}};
  for (const auto& [key, upload] : images.uploads()) {
    listing.rows.push_back({key.build.build.value, key.upload.value, key.provider.value,
                            key.build.image.value, TextCell(upload.record.external_name),
                            TextCell(upload.record.external_id), StateCell(upload.record.state),
                            UnixTime(upload.record.state_time)});
    if (detail == UploadDetail::kBrief) continue;
    listing.rows.back().push_back(TextCell(upload.record.format));
    listing.rows.back().push_back(TextCell(upload.record.progress));
  }
  return listing;
}

Listing ListImageStatus(const store::ImageCache& images) { return ListImageStatus(images, images.images()); }

Listing ListImageStatus(const store::ImageCache& images, const std::set<ImageName>& names) {
  Listing listing{ImageStatusColumns(), {}};
  for (const ImageName& image : names) {
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
