#include "cli/image_listings.h"

#include <ostream>

#include "async/shield.h"
#include "cli/listing.h"
#include "model/json_cells.h"
#include "store/image_cache.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

using MakeListing = std::function<Listing(const store::ImageCache&)>;

Task<int> Show(Context& context, Output output, MakeListing make) {
  store::ImageCache images(context.loop, context.store.client());
  images.Start();
  std::exception_ptr error;
  Listing listing;
  try {
    co_await images.WaitSynced();
    listing = make(images);
  } catch (...) {
    error = std::current_exception();
  }
  co_await IgnoreCancellation();
  co_await images.Stop();
  if (error) std::rethrow_exception(error);
  if (output == Output::kJson) {
    context.out << ToJson(listing) << '\n';
  } else {
    context.out << ToTable(listing, context.loop.Now()) << '\n';
  }
  co_return 0;
}

json::value Text(const std::optional<ImageState>& state) {
  return state ? json::value(ToString(*state)) : json::value();
}

// A paused image's builds are all shown as paused.
Listing Builds(const store::ImageCache& images) {
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
        images.paused().contains(key.image) ? json::value("paused") : Text(build.record.state);
    listing.rows.push_back({key.str(), key.image.value, JsonText(build.record.builder), std::move(formats),
                            std::move(state), ToSeconds(build.record.state_time)});
  }
  return listing;
}

Listing Uploads(const store::ImageCache& images) {
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
                            JsonText(upload.record.external_id), Text(upload.record.state),
                            ToSeconds(upload.record.state_time)});
  }
  return listing;
}

bool HasBuilds(const store::ImageCache& images, const ImageName& image) {
  auto first = images.builds().lower_bound({image, BuildId()});
  return first != images.builds().end() && first->first.image == image;
}

Listing Statuses(const store::ImageCache& images) {
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
      age = ToSeconds(found->second);
    }
    listing.rows.push_back(
        {image.value, images.paused().contains(image), std::move(request), std::move(age)});
  }
  return listing;
}

}  // namespace

Task<int> DibImageList(Context& context, Output output) { return Show(context, output, &Builds); }
Task<int> ImageList(Context& context, Output output) { return Show(context, output, &Uploads); }
Task<int> ImageStatus(Context& context, Output output) { return Show(context, output, &Statuses); }

}  // namespace nodepool::cli
