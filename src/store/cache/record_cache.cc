#include "store/cache/record_cache.h"

namespace nodepool::store {

Cache::Cache(Loop& loop, zk::Client& client, Settings settings)
    : malformed_(log::Logger(settings.logger)),
      loop_(loop),
      kind_(settings.kind),
      root_(settings.root),
      tree_(loop, client, root_, *this) {}

void Cache::Start() {
  is_started_ = true;
  tree_.Start();
}

void Cache::OnNode(const std::string& path, const zk::NodeData& node) {
  OnZnode(path, node);
  any_change_.Notify();
}

void Cache::OnGone(const std::string& path) {
  malformed_.Discard(path);
  OnZnodeGone(path);
  any_change_.Notify();
}

}  // namespace nodepool::store
