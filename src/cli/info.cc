#include "cli/info.h"

#include <ostream>

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Listing;

Listing ImageRows(const std::vector<store::UploadKey>& uploads) {
  std::map<store::BuildKey, std::vector<UploadId>> by_build;
  for (const store::UploadKey& key : uploads) by_build[key.build].push_back(key.upload);
  Listing listing{{{"image", "Image Name"}, {"build_id", "Build ID"}, {"upload_ids", "Upload IDs"}}, {}};
  for (auto& [build, ids] : by_build) {
    std::ranges::sort(ids);
    json::array names;
    for (const UploadId& id : ids) names.emplace_back(id.value);
    listing.rows.push_back({build.image.value, build.build.value, std::move(names)});
  }
  return listing;
}

Listing NodeRows(const std::map<NodeId, store::StoredNode>& nodes, const ProviderName& provider) {
  Listing listing{{{"id", "ID"}, {"server_id", "Server ID"}}, {}};
  for (const auto& [id, node] : nodes) {
    if (node.record.provider == provider) listing.rows.push_back({id.value, node.record.external_id});
  }
  return listing;
}

}  // namespace

Task<int> Info(Context& context, ProviderName provider, Output output) {
  std::vector<store::UploadKey> uploads = co_await context.store.ListUploads(provider);
  std::map<NodeId, store::StoredNode> nodes = co_await ReadNodes(context);
  Listing image_rows = ImageRows(uploads);
  Listing node_rows = NodeRows(nodes, provider);
  if (output == Output::kJson) {
    json::object result;
    result["provider"] = provider.value;
    result["images"] = ToJson(image_rows);
    result["nodes"] = ToJson(node_rows);
    context.out << result << '\n';
    co_return 0;
  }
  WallTime now = context.loop.Now();
  context.out << "ZooKeeper data for provider " << provider.value << "\n\nImage data:\n"
              << ToTable(image_rows, now) << "\n\nNodes:\n"
              << ToTable(node_rows, now) << '\n';
  co_return 0;
}

}  // namespace nodepool::cli
