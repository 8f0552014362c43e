#include "cli/aliens.h"

#include <ostream>
#include <set>

#include "async/deadline.h"
#include "store/image_cache.h"

namespace nodepool::cli {
namespace {

using listing::Listing;

constexpr Duration kLimit = std::chrono::minutes(2);
constexpr const char* kMark = "nodepool_provider_name";

struct Clouds {
  std::vector<driver::ListedMachine> machines;
  std::vector<driver::ListedImage> images;
};

enum class Kind { kMachines, kImages };

Task<> Ask(driver::Provider& provider, Kind kind, Clouds& found) {
  if (kind == Kind::kMachines) {
    found.machines = co_await provider.ListMachines();
  } else {
    found.images = co_await provider.ListImages();
  }
}

// Empty, after a warning, when the cloud cannot be asked.
Task<Clouds> AskProvider(Context& context, ProviderName name, Kind kind) {
  Clouds found;
  std::unique_ptr<driver::Provider> provider = context.make_provider(name);
  SteadyTime deadline = context.loop.SteadyNow() + kLimit;
  std::exception_ptr error;
  try {
    co_await WithDeadline(context.loop, deadline, "listing", Ask(*provider, kind, found));
  } catch (...) {
    error = std::current_exception();
  }
  co_await IgnoreCancellation();
  co_await provider->Stop();
  if (error && VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
  if (error) {
    context.logger.Warning("Exception listing {} for {}: {}",
                           kind == Kind::kImages ? "alien images" : "aliens", name, MessageOf(error));
  }
  co_return found;
}

std::vector<ProviderName> ProvidersToAsk(const Context& context, const std::optional<ProviderName>& only) {
  std::vector<ProviderName> names;
  for (const auto& [name, config] : context.config->providers) {
    bool is_wanted = only ? name == *only : true;
    if (is_wanted) names.push_back(name);
  }
  return names;
}

// The ids of the provider's ready uploads.
Task<std::map<ProviderName, std::set<std::string>>> ReadyUploads(Context& context) {
  store::ImageCache images(context.loop, context.store.client());
  images.Start();
  std::exception_ptr error;
  try {
    co_await images.WaitSynced();
  } catch (...) {
    error = std::current_exception();
  }
  std::map<ProviderName, std::set<std::string>> ids;
  for (const auto& [key, upload] : images.uploads()) {
    if (upload.record.state == ImageState::kReady)
      ids[key.provider].insert(upload.record.external_id.value_or(""));
  }
  co_await IgnoreCancellation();
  co_await images.Stop();
  if (error) std::rethrow_exception(error);
  co_return ids;
}

}  // namespace

Task<int> AlienList(Context& context, std::optional<ProviderName> provider, bool only_marked, Output output) {
  std::map<NodeId, store::StoredNode> nodes = co_await ReadNodes(context);
  Listing listing{
      {{"provider", "Provider"}, {"hostname", "Hostname"}, {"server_id", "Server ID"}, {"public_ipv4", "IP"}},
      {}};
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kMachines);
    std::set<std::string> known;
    for (const auto& [id, node] : nodes) {
      bool is_named = node.record.provider == name && node.record.external_id.is_string();
      if (is_named) known.emplace(node.record.external_id.as_string());
    }
    for (const driver::ListedMachine& machine : found.machines) {
      if (known.contains(machine.id) || (only_marked && !machine.metadata.contains(kMark))) continue;
      listing.rows.push_back({name.value, machine.name, machine.id, machine.address});
    }
  }
  Print(context, listing, output);
  co_return 0;
}

Task<int> AlienImageList(Context& context, std::optional<ProviderName> provider, Output output) {
  std::map<ProviderName, std::set<std::string>> known = co_await ReadyUploads(context);
  Listing listing{{{"provider", "Provider"}, {"name", "Name"}, {"image_id", "Image ID"}}, {}};
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kImages);
    for (const driver::ListedImage& image : found.images) {
      if (known[name].contains(image.id)) continue;
      listing.rows.push_back({name.value, image.name, image.id});
    }
  }
  Print(context, listing, output);
  co_return 0;
}

}  // namespace nodepool::cli
