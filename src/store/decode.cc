#include "store/decode.h"

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat) {
  Revision revision;
  revision.version = stat.version;
  revision.mzxid = stat.mzxid;
  revision.created = WallTime(std::chrono::milliseconds(stat.ctime));
  revision.modified = WallTime(std::chrono::milliseconds(stat.mtime));
  revision.ephemeral_owner = stat.ephemeral_owner;
  return revision;
}

}  // namespace nodepool::store
