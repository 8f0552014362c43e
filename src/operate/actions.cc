#include "operate/actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "base/text.h"
#include "config/disk_images.h"

namespace nodepool::operate {

namespace {

constexpr std::size_t kIdDigits = 10;

using Locked = std::expected<store::LockedNode, Refusal>;
// Changes the record, or says why it must not be changed.
using ChangeNode = std::function<Done(Node&)>;

std::unexpected<Refusal> NoSuchNode(const NodeId& id) {
  return NotFound(fmt::format("Node id {} not found", id));
}

Task<> UnlockIfLocked(Locked& node) {
  if (node) co_await node->Unlock();
}

Task<Done> UpdateLocked(Locked& node, ChangeNode change) {
  if (!node) co_return std::unexpected(node.error());
  Done allowed;
  auto apply = [&](Node& record) {
    allowed = change(record);
    return allowed ? store::Change::kWrite : store::Change::kSkip;
  };
  co_await node->Update(apply);
  co_return allowed;
}

Task<Done> LockAndChange(Loop& loop, store::Store& store, NodeId id, Duration patience, ChangeNode change) {
  auto work = [&change](Locked& node) { return UpdateLocked(node, change); };
  Done done = co_await Bracket(LockNode(loop, store, std::move(id), patience), work, &UnlockIfLocked);
  co_return done;
}

}  // namespace

std::optional<NodeId> ParseNodeId(std::string_view text) {
  bool is_number = !text.empty() && text.size() <= kIdDigits &&
                   std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::optional(NodeId(fmt::format("{:0>10}", text))) : std::nullopt;
}

Task<std::expected<store::LockedNode, Refusal>> LockNode(Loop& loop, store::Store& store, NodeId id,
                                                         Duration patience) {
  std::optional<store::StoredNode> node = co_await store.nodes.Read(id);
  if (!node) co_return NoSuchNode(id);
  SteadyTime deadline = loop.SteadyNow() + patience;
  Outcome<std::optional<store::LockedNode>> locked = co_await Attempt(store.nodes.Lock(id, deadline));
  if (FailedWith(locked, Verdict::kNotFound)) co_return NoSuchNode(id);
  if (!locked) locked.error().Rethrow();
  if (!*locked) {
    co_return Conflict(fmt::format(
        "Timeout trying to acquire lock /nodepool/nodes/{}/lock: the node is in use, or being launched or "
        "deleted",
        id));
  }
  co_return std::move(**locked);
}

Task<Done> HoldNode(Loop& loop, store::Store& store, NodeId id, HoldOrder order, Duration patience) {
  auto hold = [&loop, order](Node& node) -> Done {
    node.SetState(NodeState::kHold, loop.Now());
    if (order.comment) node.comment = *order.comment;
    if (order.seconds) node.hold_expiration = *order.seconds;
    return {};
  };
  return LockAndChange(loop, store, std::move(id), patience, hold);
}

Task<Done> EndHold(Loop& loop, store::Store& store, NodeId id, Duration patience) {
  auto end = [&loop, id](Node& node) -> Done {
    if (node.state != NodeState::kHold) return Conflict(fmt::format("Node {} is not held", id));
    node.SetState(NodeState::kUsed, loop.Now());
    return {};
  };
  return LockAndChange(loop, store, id, patience, end);
}

Task<Done> DeleteNode(Loop& loop, store::Store& store, NodeId id, Duration patience) {
  auto mark = [&loop](Node& node) -> Done {
    node.SetState(NodeState::kDeleting, loop.Now());
    return {};
  };
  return LockAndChange(loop, store, std::move(id), patience, mark);
}

Task<Done> PauseProvider(Loop& loop, store::Store& store, const driver::LoadedConfig& config,
                         ProviderName provider, ProviderPause pause) {
  if (!config.providers.contains(provider))
    co_return NotFound(fmt::format("{} is not one of the configured providers", Excerpt(provider.value)));
  pause.paused_time = loop.Now();
  co_await store.provider_pauses.Pause(std::move(provider), std::move(pause));
  co_return Done();
}

Task<Done> UnpauseProvider(store::Store& store, ProviderName provider) {
  std::string unknown = fmt::format("Provider {} is not paused", Excerpt(provider.value));
  bool was_paused = false;
  if (!provider.empty()) was_paused = co_await store.provider_pauses.Unpause(std::move(provider));
  if (!was_paused) co_return NotFound(std::move(unknown));
  co_return Done();
}

namespace {

constexpr std::size_t kShownName = 200;

// What applies to both kinds of records.
template <class Record>
std::function<store::Change(Record&)> ToDeleting(WallTime now) {
  return [now](Record& record) {
    record.state = ImageState::kDeleting;
    record.state_time = now;
    return store::Change::kWrite;
  };
}

// Whether the text can be a part of a path in ZooKeeper.
bool IsOneName(std::string_view text) {
  bool is_visible = Visible(text) == text;  // no control characters, and UTF-8
  return is_visible && !text.empty() && text != "." && text != ".." && text.find('/') == text.npos;
}

bool AreNames(const store::BuildKey& key) { return IsOneName(key.image.value) && IsOneName(key.build.value); }

Done MayRetry(const driver::LoadedConfig& config, const ImageName& image, const ProviderName& provider) {
  auto configured = config.providers.find(provider);
  if (configured == config.providers.end())
    return NotFound(fmt::format("{} is not one of the configured providers", Excerpt(provider.value)));
  if (!IsUploadedTo(*configured->second, image))
    return Conflict(fmt::format("Provider {} does not list the image {}", provider, Excerpt(image.value)));
  return {};
}

}  // namespace

std::string WhyNotBuilt(const driver::LoadedConfig& config, const ImageName& image) {
  auto found = config.common.diskimages.find(image);
  if (found == config.common.diskimages.end())
    return fmt::format("{} is not one of the configured diskimages", Excerpt(image.value));
  if (std::optional<std::string_view> fault = config::ImageNameFault(image))
    return fmt::format("No builder builds the image {}: its name {}", Excerpt(image.value), *fault);
  if (found->second.is_paused) return fmt::format("Image {} is paused by the configuration", image);
  return "";
}

bool IsUploadedTo(const driver::ProviderConfig& provider, const ImageName& image) {
  return provider.manages_images && provider.diskimages.contains(image);
}

Task<std::optional<store::StoredBuild>> NewestReadyBuild(store::Store& store, ImageName image) {
  std::vector<store::StoredBuild> builds = co_await store.images.ListBuilds(image);
  std::optional<store::StoredBuild> newest;
  for (store::StoredBuild& build : builds) {
    if (build.record.state != ImageState::kReady) continue;
    bool is_newer = !newest || newest->record.state_time < build.record.state_time;
    if (is_newer) newest = std::move(build);
  }
  co_return newest;
}

Task<Done> RequestBuild(store::Store& store, const driver::LoadedConfig& config, ImageName image) {
  std::string why_not = WhyNotBuilt(config, image);
  if (!why_not.empty()) co_return Conflict(std::move(why_not));
  co_await store.images.RequestBuild(std::move(image));
  co_return Done();
}

Task<Done> PauseImage(store::Store& store, ImageName image) {
  std::string unknown =
      fmt::format("There is no image {} yet; it can be paused once a builder knows it", Excerpt(image.value));
  if (!IsOneName(image.value)) co_return NotFound(std::move(unknown));
  Outcome<> paused = co_await Attempt(store.images.Pause(image));
  if (FailedWith(paused, Verdict::kNotFound)) co_return NotFound(std::move(unknown));
  if (!paused) paused.error().Rethrow();
  co_return Done();
}

Task<> UnpauseImage(store::Store& store, ImageName image) {
  if (IsOneName(image.value)) co_await store.images.Unpause(std::move(image));
}

Task<Done> DeleteBuild(Loop& loop, store::Store& store, store::BuildKey key) {
  std::optional<store::StoredBuild> build;
  if (AreNames(key)) build = co_await store.images.ReadBuild(key);
  if (!build) co_return NotFound(fmt::format("Build {} not found", Excerpt(key.str(), kShownName)));
  if (build->record.state == ImageState::kBuilding) co_return Conflict("Cannot delete a build in progress");
  auto change = ToDeleting<ImageBuild>(loop.Now());
  co_await store.images.UpdateUnlocked(*build, change);
  co_return Done();
}

Task<Done> DeleteUpload(Loop& loop, store::Store& store, store::UploadKey key, bool is_forced) {
  std::optional<store::StoredUpload> upload;
  bool are_names = AreNames(key.build) && IsOneName(key.provider.value) && IsOneName(key.upload.value);
  if (are_names) upload = co_await store.images.ReadUpload(key);
  if (!upload) co_return NotFound("Image upload not found");
  if (upload->record.state == ImageState::kUploading)
    co_return Conflict("Cannot delete because image upload in progress");
  if (is_forced) {
    co_await store.images.RemoveUpload(key);
  } else {
    co_await MarkForDeletion(loop, store, *upload);
  }
  co_return Done();
}

Task<std::expected<bool, Refusal>> RetryUpload(store::Store& store, const driver::LoadedConfig& config,
                                               ImageName image, ProviderName provider) {
  Done allowed = MayRetry(config, image, provider);
  if (!allowed) co_return std::unexpected(allowed.error());
  std::optional<store::StoredBuild> newest = co_await NewestReadyBuild(store, image);
  if (!newest) co_return Conflict(fmt::format("Image {} has no ready build", image));
  std::vector<store::StoredUpload> uploads = co_await store.images.ListUploads(newest->id, provider);
  bool is_there = std::ranges::any_of(
      uploads, [](const store::StoredUpload& upload) { return upload.record.state == ImageState::kReady; });
  if (!is_there) co_await store.images.RetryUpload(newest->id, provider);
  co_return !is_there;
}

Task<> MarkForDeletion(Loop& loop, store::Store& store, store::StoredUpload upload) {
  auto change = ToDeleting<ImageUpload>(loop.Now());
  co_await store.images.UpdateUnlocked(upload, change);
}

}  // namespace nodepool::operate
