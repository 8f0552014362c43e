// Sessions' requests, selected by the input, to the embedded server and to a model of its tree: both
// give the same answers, also after restarts.
#include <fuzzer/FuzzedDataProvider.h>

#include <array>

#include "checked_server.h"

namespace nodepool::zk::server {
namespace {

std::string PickPath(FuzzedDataProvider& in, const TreeModel& model) {
  static const std::array<const char*, 16> kPaths{
      "/a",  "/a/b", "/a/b/c", "/a/b/", "/a//b",      "/a/../d",           "/d",     "/d/e-",
      "/d/", "/",    "",       "x",     "/zookeeper", "/zookeeper/config", "/d/e\1", "/a/."};
  if (in.ConsumeBool()) return in.PickValueInArray(kPaths);
  std::vector<std::string> present = model.Paths();
  return present[in.ConsumeIntegralInRange<std::size_t>(0, present.size() - 1)];
}

Op PickOp(FuzzedDataProvider& in, const TreeModel& model) {
  std::string path = PickPath(in, model);
  std::int32_t version = in.ConsumeIntegralInRange(-1, 2);
  switch (in.ConsumeIntegralInRange(0, 5)) {
    case 0:
      return DeleteOp{path, version};
    case 1:
      return SetOp{path, in.ConsumeRandomLengthString(8), version};
    case 2:
      return CheckOp{path, version};
    default: {
      auto mode = static_cast<CreateMode>(in.ConsumeIntegralInRange(0, 4));
      if (in.ConsumeBool()) path += path == "/" ? "f" : "/f";
      return CreateOp{path, in.ConsumeRandomLengthString(8), mode};
    }
  }
}

void Turn(FuzzedDataProvider& in, CheckedServer& server) {
  auto session = in.ConsumeIntegralInRange<std::int64_t>(1, CheckedServer::kSessions);
  switch (in.ConsumeIntegralInRange(0, 9)) {
    case 0:
      return server.Restart();
    case 1:
      return server.Reopen(session);
    case 2:
      return server.DeleteEmptyContainers();
    case 3:
      return server.Read(session, PickPath(in, server.model()));
    case 4:
    case 5: {
      std::vector<Op> ops;
      for (int count = in.ConsumeIntegralInRange(0, 5); count > 0; --count) {
        ops.push_back(PickOp(in, server.model()));
      }
      return server.Transact(session, ops);
    }
    default:
      return server.Write(session, PickOp(in, server.model()));
  }
}

}  // namespace
}  // namespace nodepool::zk::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  using namespace nodepool::zk::server;
  CheckedServer server;
  constexpr int kTurns = 60;
  for (int turn = 0; turn < kTurns && in.remaining_bytes() > 0; ++turn) Turn(in, server);
  server.CheckAll();
  server.Restart();
  server.CheckAll();
  return 0;
}
