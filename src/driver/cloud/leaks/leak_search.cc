#include "driver/cloud/leaks/leak_search.h"

#include <algorithm>
#include <iterator>

#include "async/task.h"

namespace nodepool::driver::cloud {

Task<> AppendListed(log::Logger logger, ProviderName provider, const char* what,
                    Task<std::vector<Resource>> list, std::vector<Resource>& resources) {
  Outcome<std::vector<Resource>> more = co_await Attempt(std::move(list));
  if (!more) {
    logger.Warning(
        "The {} of provider {} could not be listed; leaked ones are searched for in the next sweep: {}", what,
        provider, more.error().message());
    co_return;
  }
  std::ranges::move(*more, std::back_inserter(resources));
}

bool MayHaveImages(const Framework& framework, const ProviderConfig& config) {
  return !config.diskimages.empty() || framework.HasImages();
}

}  // namespace nodepool::driver::cloud
