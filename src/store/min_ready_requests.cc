#include "store/min_ready_requests.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {
Task<std::int32_t> MinReadyRequests::Version() {
  std::string path(paths::kMinReady);
  zk::Result<zk::NodeData> known = co_await tree_.Get(path);
  if (known) co_return known->stat.version;
  co_await tree_.Ensure(path);
  known = co_await tree_.Get(path);
  if (!known) throw Error(Verdict::kConflict, path + " was removed by another program");
  co_return known->stat.version;
}

Task<std::optional<std::vector<RequestId>>> MinReadyRequests::Create(std::vector<NodeRequest> requests,
                                                                     std::int32_t seen_version) {
  std::string path = fmt::format("{}/{}-", paths::kRequests, kMinReadyPrecedence);
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{std::string(paths::kMinReady), "", seen_version});
  for (const NodeRequest& request : requests)
    ops.emplace_back(zk::CreateOp{path, ToJson(request), zk::CreateMode::kEphemeralSequential});
  auto attempt = [&] { return tree_.client().Multi(ops); };
  zk::MultiResult result = co_await tree_.Repeat<zk::MultiResult>(attempt);
  // There has been no request yet.
  if (result.failed > 0) co_await tree_.Ensure(std::string(paths::kRequests));
  if (!result.ok()) co_return std::nullopt;
  std::vector<RequestId> ids;
  for (std::size_t i = 1; i < result.results.size(); ++i)
    ids.emplace_back(zk::BaseName(result.results[i].path));
  co_return ids;
}

}  // namespace nodepool::store
