#pragma once

#include <optional>
#include <string>

#include "async/loop.h"
#include "driver/loading/load_config.h"
#include "operate/refusal.h"
#include "store/store.h"

// What operators ask of builders, by the command line and over HTTP (operations.md 5.6, http-actions.md 2).
// Builders work in the background.
namespace nodepool::operate {

// Why no builder would build the image; empty: one would.
std::string WhyNotBuilt(const driver::LoadedConfig& config, const ImageName& image);
// Whether the image is uploaded to this provider.
bool IsUploadedTo(const driver::ProviderConfig& provider, const ImageName& image);
// The latest build that is ready.
Task<std::optional<store::StoredBuild>> NewestReadyBuild(store::Store& store, ImageName image);

// Asks for a new build. kConflict: none would be made.
Task<Done> RequestBuild(store::Store& store, const driver::LoadedConfig& config, ImageName image);
// Builds the image no more. kNotFound: no builder knows it.
Task<Done> PauseImage(store::Store& store, ImageName image);
Task<> UnpauseImage(store::Store& store, ImageName image);
// Marks the build; a builder deletes it with its uploads. kConflict: it is in progress.
Task<Done> DeleteBuild(Loop& loop, store::Store& store, store::BuildKey key);
// Marks the upload; a builder deletes it. Forced, it removes the record at once, and what the cloud has is
// deleted by a launcher as a leak. kConflict: it is in progress.
Task<Done> DeleteUpload(Loop& loop, store::Store& store, store::UploadKey key, bool is_forced = false);
// Has the newest ready build uploaded to the provider at once, also if builders wait after a failure
// (builder.md 10.6). False: the provider has it. kConflict: there is none, or the configuration does not want
// it there.
Task<std::expected<bool, Refusal>> RetryUpload(store::Store& store, const driver::LoadedConfig& config,
                                               ImageName image, ProviderName provider);

// Marks the upload; a builder deletes it.
Task<> MarkForDeletion(Loop& loop, store::Store& store, store::StoredUpload upload);

}  // namespace nodepool::operate
