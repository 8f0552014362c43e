#include "cli/image_listings.h"

#include "async/shield.h"
#include "listing/image_listing.h"

namespace nodepool::cli {
namespace {

using listing::Listing;
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
  Print(context, listing, output);
  co_return 0;
}

}  // namespace

Task<int> DibImageList(Context& context, Output output) {
  return Show(context, output, &listing::ListBuilds);
}
Task<int> ImageList(Context& context, Output output) { return Show(context, output, &listing::ListUploads); }
Task<int> ImageStatus(Context& context, Output output) {
  return Show(context, output, &listing::ListImageStatus);
}

}  // namespace nodepool::cli
