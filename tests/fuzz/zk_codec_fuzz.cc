// Whatever a ZooKeeper server may send: reading it ends with a record or an Error,
// never otherwise. The first byte picks the kind of record.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "zk/wire/protocol.h"
#include "zk/znode.h"

namespace nodepool::zk {
namespace {

void Read(std::uint8_t kind, std::string_view bytes) {
  JuteReader in(bytes);
  switch (kind % 9) {
    case 0:
      protocol::ReadConnectResponse(in);
      return;
    case 1:
      protocol::ReadReplyHeader(in);
      return;
    case 2:
      protocol::ReadStat(in);
      return;
    case 3:
      protocol::ReadCreated(in);
      return;
    case 4:
      protocol::ReadNodeData(in);
      return;
    case 5:
      protocol::ReadChildren(in);
      return;
    case 6:
      protocol::ReadMulti(in, kind / 9);
      return;
    case 7: {
      WatchEvent event = protocol::ReadEvent(in);
      WithoutChroot(event.path, "/np");
      return;
    }
    default:
      CheckPath(bytes, kind >= 128);
  }
}

}  // namespace
}  // namespace nodepool::zk

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    nodepool::zk::Read(data[0], bytes);
  } catch (const nodepool::Error&) {
  }
  return 0;
}
