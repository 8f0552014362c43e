#include "store/cache/list_uploads.h"

#include "store/paths.h"

namespace nodepool::store {
namespace {

Task<> AddUploadsOf(Store& store, BuildKey build, std::vector<StoredUpload>& uploads) {
  zk::Result<zk::Children> providers = co_await store.tree.client().GetChildren(paths::Providers(build));
  if (!providers) co_return;
  for (const std::string& provider : providers->names) {
    std::vector<StoredUpload> found = co_await store.images.ListUploads(build, ProviderName(provider));
    for (StoredUpload& upload : found) uploads.push_back(std::move(upload));
  }
}

}  // namespace

Task<std::vector<StoredUpload>> ListUploads(Store& store) {
  std::vector<StoredUpload> uploads;
  std::vector<ImageName> images = co_await store.images.List();
  for (const ImageName& image : images) {
    std::vector<StoredBuild> builds = co_await store.images.ListBuilds(image);
    for (const StoredBuild& build : builds) co_await AddUploadsOf(store, build.id, uploads);
  }
  co_return uploads;
}

}  // namespace nodepool::store
