#pragma once

#include <optional>
#include <set>
#include <vector>

#include "builder/context.h"
#include "sched/images/image_view.h"

// The input of decisions, made from what is known now.
namespace nodepool::builder {

// The image as the cache shows it.
sched::ImageView ViewOf(const Context& context, const ImageName& image);
// The same with builds that were read directly.
sched::ImageView ViewOf(const Context& context, const ImageName& image,
                        const std::vector<store::StoredBuild>& builds);

// The image's spec in the configuration; nullopt: it is not configured.
std::optional<sched::ImageSpec> SpecOf(const driver::LoadedConfig& config, const ImageName& image);

// The providers to which images are uploaded and from which they are deleted.
std::set<ProviderName> ProvidersWithImages(const driver::LoadedConfig& config);

}  // namespace nodepool::builder
