// Sessions' requests, selected by the input, to the embedded server and to a model of its tree and watches:
// both give the same answers and events, also after restarts.
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

Access PickAccess(FuzzedDataProvider& in) {
  return static_cast<Access>(in.ConsumeIntegralInRange(0, kAccesses - 1));
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
      std::string content = in.ConsumeRandomLengthString(8);
      return CreateOp{path, content, mode, std::make_shared<const Acl>(ListOf(PickAccess(in)))};
    }
  }
}

// A znode and all that is below it, as a client removes a record with its lock; and perhaps made anew.
std::vector<Op> PickRemoval(FuzzedDataProvider& in, const TreeModel& model) {
  std::vector<std::string> present = model.Paths();
  std::string top = PickPath(in, model);
  std::vector<Op> ops;
  for (auto path = present.rbegin(); path != present.rend(); ++path) {
    if (*path == top || path->starts_with(top + "/")) ops.push_back(DeleteOp{*path});
  }
  if (in.ConsumeBool()) ops.push_back(CreateOp{top, "", CreateMode::kPersistent});
  return ops;
}

void Turn(FuzzedDataProvider& in, CheckedServer& server) {
  auto session = in.ConsumeIntegralInRange<std::int64_t>(1, CheckedServer::kSessions);
  switch (in.ConsumeIntegralInRange(0, 13)) {
    case 0:
      return server.Restart();
    case 1:
      return server.Reopen(session);
    case 2:
      return server.DeleteEmptyContainers();
    case 3:
      return server.Read(session, PickPath(in, server.model()), in.ConsumeBool());
    case 4:
    case 5: {
      std::vector<Op> ops;
      for (int count = in.ConsumeIntegralInRange(0, 5); count > 0; --count) {
        ops.push_back(PickOp(in, server.model()));
      }
      return server.Transact(session, ops);
    }
    case 6:
      return server.AddWatch(session, PickPath(in, server.model()),
                             in.ConsumeBool() ? WatchMode::kPersistent : WatchMode::kPersistentRecursive);
    case 7:
      return server.RemoveWatches(session, PickPath(in, server.model()), in.ConsumeIntegralInRange(1, 3));
    case 8:
      return server.Transact(session, PickRemoval(in, server.model()));
    case 9:
      return server.SetAccess(session, PickPath(in, server.model()), PickAccess(in),
                              in.ConsumeIntegralInRange(-1, 1));
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
