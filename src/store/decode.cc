#include "store/decode.h"

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat) {
  Revision revision;
  revision.version = stat.version;
  revision.mzxid = stat.mzxid;
  revision.created = WallTime(std::chrono::milliseconds(stat.ctime));
  revision.modified = WallTime(std::chrono::milliseconds(stat.mtime));
  revision.is_ephemeral = stat.ephemeral_owner != 0;
  return revision;
}

}  // namespace nodepool::store
