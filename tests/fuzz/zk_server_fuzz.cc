// Whatever a client may send: reading it ends with a request or an Error, carrying it out
// with an answer that our client can read. The input is a conversation: each frame has one
// byte for its length in front.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "zk/server/engine.h"

namespace nodepool::zk::server {
namespace {

// As a client reads it; no answer is malformed.
void ReadAnswer(std::string_view frame) {
  JuteReader in(frame);
  if (in.Int() != static_cast<std::int32_t>(in.remaining())) __builtin_trap();
  protocol::ReadReplyHeader(in);
}

void Converse(std::string_view bytes) {
  Engine engine(Engine::Limits{1 << 20, 1 << 16});
  engine.OpenSession({1, "0123456789abcdef", 1000});
  Engine::Peer peer;
  peer.connection_id = 1;
  peer.session = 1;
  try {
    if (!bytes.empty()) ReadConnectRequest(bytes.substr(1));
  } catch (const Error&) {
  }
  while (!bytes.empty() && engine.FindSession(1) != nullptr) {
    std::size_t size = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    std::string_view frame = bytes.substr(0, size);
    bytes.remove_prefix(frame.size());
    try {
      Request request = ReadRequest(frame);
      std::string answer;
      engine.Execute(request, peer, WallTime(), answer);
      ReadAnswer(answer);
    } catch (const Error&) {
      // The connection ends; another client's goes on.
    }
  }
  // What is stored restores the same tree.
  Changes changes = engine.TakeChanges();
  Engine again(Engine::Limits{});
  again.Restore(std::move(changes.opened), std::move(changes.stored), changes.zxid);
  if (again.tree().size() != engine.tree().size()) __builtin_trap();
}

}  // namespace
}  // namespace nodepool::zk::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nodepool::zk::server::Converse(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
