#pragma once

#include <optional>
#include <set>
#include <vector>

#include "builder/context.h"
#include "sched/images/image_view.h"

// What decisions rest on, made from what is known now.
namespace nodepool::builder {

// The image as the cache knows it.
sched::ImageView ViewOf(const Context& context, const ImageName& image);
// The same with builds that were read directly.
sched::ImageView ViewOf(const Context& context, const ImageName& image,
                        const std::vector<store::StoredBuild>& builds);

// What the configuration wants of the image; nullopt: nothing, it is not configured.
std::optional<sched::ImageWish> WishOf(const driver::LoadedConfig& config, const ImageName& image);

// The providers that images are uploaded to and deleted from.
std::set<ProviderName> ProvidersWithImages(const driver::LoadedConfig& config);

}  // namespace nodepool::builder
