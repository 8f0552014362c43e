#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "async/loop.h"
#include "driver/loading/load_config.h"
#include "store/store.h"

namespace nodepool::operate {

// Why an operator's change was not made. Nothing was written then. Faults of ZooKeeper are thrown.
struct Refusal {
  enum class Kind {
    kNotFound,  // there is no such node, image, build, upload or provider
    kConflict,  // its state, another process or the configuration does not allow it
  };
  Kind kind = Kind::kNotFound;
  std::string why;  // for people, without a full stop
};

using Done = std::expected<void, Refusal>;

inline std::unexpected<Refusal> NotFound(std::string why) {
  return std::unexpected(Refusal{Refusal::Kind::kNotFound, std::move(why)});
}

inline std::unexpected<Refusal> Conflict(std::string why) {
  return std::unexpected(Refusal{Refusal::Kind::kConflict, std::move(why)});
}

// What operators do with nodes, by the command line and over HTTP (operations.md 5.5, http-actions.md 2).
// Each works under the node's lock and waits at most `patience` for it: kConflict.

// A node id is ten digits, of which leading zeros may be omitted; nothing for any other text.
std::optional<NodeId> ParseNodeId(std::string_view text);

struct HoldOrder {
  std::optional<std::string> comment;   // without one that of the record stays
  std::optional<std::int64_t> seconds;  // how long it is held; without them as the record says
};

Task<Done> HoldNode(Loop& loop, store::Store& store, NodeId id, HoldOrder order, Duration patience);
// Makes a held node `used`, so that a launcher deletes it. kConflict: it is not held.
Task<Done> EndHold(Loop& loop, store::Store& store, NodeId id, Duration patience);
// Makes the node `deleting`; a launcher deletes it.
Task<Done> DeleteNode(Loop& loop, store::Store& store, NodeId id, Duration patience);

// The locked node; the refusal if it is gone or locked by another client.
Task<std::expected<store::LockedNode, Refusal>> LockNode(Loop& loop, store::Store& store, NodeId id,
                                                         Duration patience);

// The switch by which operators pause providers, by the command line and over HTTP (http-actions.md 1).

// Pauses the provider; one that is paused already gets this record. The time is set here. kNotFound: no such
// provider is configured.
Task<Done> PauseProvider(Loop& loop, store::Store& store, const driver::LoadedConfig& config,
                         ProviderName provider, ProviderPause pause);
// Also of a provider that is not configured any more. kNotFound: it is not paused.
Task<Done> UnpauseProvider(store::Store& store, ProviderName provider);

// What operators ask of builders, by the command line and over HTTP (operations.md 5.6, http-actions.md 2).
// Builders work in the background.

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
