#include "listing/image_listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/json.h"

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

namespace {

template <class Ids>
std::string Names(const Ids& ids) {
  std::vector<std::string> names;
  for (const auto& id : ids) names.push_back(id.value);
  return Join(names, ", ");
}

bool IsNewer(const store::StoredBuild& build, const store::StoredBuild* other) {
  return other == nullptr || build.record.state_time > other->record.state_time;
}

const ConfiguredImage* Find(const Configured& configured, const ImageName& image) {
  auto found = configured.images.find(image);
  return found == configured.images.end() ? nullptr : &found->second;
}

void FindBuilds(ImageHealth& health, const store::ImageCache& images, const ImageName& image) {
  const store::StoredBuild* ended = nullptr;
  auto build = images.builds().lower_bound({image, BuildId()});
  for (; build != images.builds().end() && build->first.image == image; ++build) {
    const ImageBuild& record = build->second.record;
    if (record.state == ImageState::kDeleting) continue;
    if (IsNewer(build->second, health.newest)) health.newest = &build->second;
    bool has_ended = record.state != ImageState::kBuilding;
    if (has_ended && IsNewer(build->second, ended)) ended = &build->second;
    if (record.state != ImageState::kReady) continue;
    health.made = health.made ? std::max(*health.made, record.state_time) : record.state_time;
  }
  if (ended != nullptr && ended->record.state == ImageState::kFailed) health.failed = ended;
}

std::string LogOf(const store::StoredBuild& build, const std::string& build_log_dir) {
  if (build_log_dir.empty()) return "";
  return fmt::format("{}:{}/{}", build.record.builder.value_or("the builder"), build_log_dir,
                     build.id.log_name());
}

// "5 min ago": in the unit that is short and precise enough.
std::string Ago(Duration age) {
  auto seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(age).count());
  if (seconds < 120) return fmt::format("{} s ago", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

std::string BuildFailure(const ImageHealth& health, WallTime now) {
  return fmt::format("its last build failed {}{}", Ago(now - health.failed->record.state_time),
                     FailureOf(health));
}

// Where an upload failed that nothing newer in the provider replaces; a new attempt does not, until it ends.
void FindFailedUploads(ImageHealth& health, const store::ImageCache& images, const ImageName& image) {
  std::map<ProviderName, const store::StoredUpload*> newest;
  const auto& uploads = images.uploads();
  auto upload = uploads.lower_bound({{image, BuildId()}, ProviderName(), UploadId()});
  for (; upload != uploads.end() && upload->first.build.image == image; ++upload) {
    const ImageUpload& record = upload->second.record;
    if (record.state != ImageState::kReady && record.state != ImageState::kFailed) continue;
    const store::StoredUpload*& known = newest[upload->first.provider];
    if (known == nullptr || record.state_time >= known->record.state_time) known = &upload->second;
  }
  for (const auto& [provider, stored] : newest) {
    if (stored->record.state == ImageState::kFailed) health.failed_uploads.emplace(provider, stored);
  }
}

// "c1: 403 from the cloud; c2: ..."; null: none failed.
Cell UploadErrors(const ImageHealth& health) {
  if (health.failed_uploads.empty()) return {};
  std::vector<std::string> errors;
  for (const auto& [provider, upload] : health.failed_uploads)
    errors.push_back(fmt::format("{}: {}", provider, upload->record.error.value_or("it failed")));
  return Cell(Join(errors, "; "));
}

std::vector<Cell> HealthCells(const ImageHealth& health) {
  std::vector<Cell> cells;
  cells.push_back(health.newest == nullptr ? Cell() : StateCell(health.newest->record.state));
  cells.push_back(health.newest == nullptr ? Cell() : Cell(UnixTime(health.newest->record.state_time)));
  cells.push_back(health.newest == nullptr ? Cell() : TextCell(health.newest->record.error));
  cells.push_back(UploadErrors(health));
  cells.emplace_back(JsonNames(health.missing));
  cells.emplace_back(JsonNames(std::vector<LabelName>(health.labels.begin(), health.labels.end())));
  return cells;
}

}  // namespace

std::string FailureOf(const ImageHealth& health) {
  const std::optional<std::string>& error = health.failed->record.error;
  return (error ? ": " + *error : "") + (health.log.empty() ? "" : "; log: " + health.log);
}

std::string UploadFailure(const ProviderName& provider, const store::StoredUpload& upload) {
  const std::optional<std::string>& error = upload.record.error;
  return fmt::format("the upload to {} failed{}", provider, error ? ": " + *error : "");
}

ImageHealth HealthOf(const store::ImageCache& images, const ImageName& image,
                     const ConfiguredImage* configured, WallTime now) {
  ImageHealth health;
  FindBuilds(health, images, image);
  FindFailedUploads(health, images, image);
  if (configured == nullptr) return health;
  if (health.failed != nullptr) health.log = LogOf(*health.failed, configured->build_log_dir);
  bool is_paused = configured->is_paused || images.paused().contains(image);
  health.is_old = !is_paused && health.made && now - *health.made > 2 * configured->rebuild_age;
  for (const auto& [provider, labels] : configured->labels) {
    if (images.NewestReadyUpload(image, provider) != nullptr) continue;
    health.missing.push_back(provider);
    health.labels.insert(labels.begin(), labels.end());
  }
  return health;
}

std::vector<std::string> TroublesOf(const ImageHealth& health, WallTime now) {
  std::vector<std::string> troubles;
  if (health.failed != nullptr) troubles.push_back(BuildFailure(health, now));
  if (!health.made) troubles.emplace_back("no build is ready");
  if (health.is_old) troubles.push_back(fmt::format("it is {} old", FormatAge(now - *health.made)));
  for (const auto& [provider, upload] : health.failed_uploads)
    troubles.push_back(UploadFailure(provider, *upload));
  if (!health.missing.empty()) troubles.push_back("no upload in " + Names(health.missing));
  if (!health.labels.empty()) troubles.push_back("wanted by " + Names(health.labels));
  return troubles;
}

std::map<LabelName, std::vector<std::string>> MissingImages(const store::ImageCache& images,
                                                            const Configured& configured, WallTime now) {
  std::map<LabelName, std::vector<std::string>> missing;
  for (const auto& [image, settings] : configured.images) {
    for (const ProviderName& provider : HealthOf(images, image, &settings, now).missing) {
      for (const LabelName& label : settings.labels.at(provider))
        missing[label].push_back(fmt::format("image {} has no upload in {}", image, provider));
    }
  }
  return missing;
}

std::vector<Column> ImageHealthColumns() {
  std::vector<Column> columns = ImageStatusColumns();
  columns.insert(
      columns.end(),
      {{.key = "last_build", .title = "Last Build", .fit = {Importance::kHigh}},
       {.key = "last_build_age", .title = "Build Age", .kind = Kind::kTime, .since = "last_build_since"},
       {.key = "last_build_error", .title = "Build Error", .fit = kSentence},
       {.key = "upload_error", .title = "Upload Error", .fit = kSentence, .is_extra = true},
       {.key = "no_upload_in", .title = "No Upload In", .fit = kName, .is_extra = true},
       {.key = "labels_waiting", .title = "Labels Waiting", .fit = kName, .is_extra = true}});
  return columns;
}

Listing ListImageHealth(const store::ImageCache& images, const Configured& configured, WallTime now) {
  std::set<ImageName> names = images.images();
  for (const auto& [image, settings] : configured.images) names.insert(image);
  Listing listing = ListImageStatus(images, names);
  listing.columns = ImageHealthColumns();
  auto row = listing.rows.begin();
  for (const ImageName& image : names) {
    ImageHealth health = HealthOf(images, image, Find(configured, image), now);
    for (Cell& cell : HealthCells(health)) row->push_back(std::move(cell));
    ++row;
  }
  return listing;
}

std::vector<Column> ImageTroubleColumns() {
  return {{.key = "image", .title = "Image", .fit = {Importance::kAlways}},
          {.key = "trouble", .title = "Trouble", .fit = kSentence}};
}

Listing ListImageTroubles(const store::ImageCache& images, const Configured& configured, WallTime now) {
  Listing listing{ImageTroubleColumns(), {}};
  for (const auto& [image, settings] : configured.images) {
    std::vector<std::string> troubles = TroublesOf(HealthOf(images, image, &settings, now), now);
    if (!troubles.empty()) listing.rows.push_back({image.value, Join(troubles, "; ")});
  }
  return listing;
}

}  // namespace nodepool::listing
