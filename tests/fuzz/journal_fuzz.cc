// Any rows in the embedded server's database, and any damage to its file: a start ends with a tree, which can
// be changed and restored again, or with Error.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "zk/server/journal.h"

namespace nodepool::zk::server {
namespace {

namespace fs = std::filesystem;

// The file of a server that has a session with an ephemeral znode.
void MakeDatabase(const fs::path& path) {
  Engine engine{Engine::Limits{}};
  Journal journal(path);
  Journal::Contents contents = journal.Load();
  engine.Restore(std::move(contents.sessions), std::move(contents.znodes), contents.zxid);
  engine.OpenSession({1, "0123456789abcdef", 1000});
  Changes changes = engine.TakeChanges();
  for (const char* name : {"/a", "/a/b", "/c"}) {
    DataTree::Snapshot& znode = changes.stored.emplace_back();
    znode.path = name;
    znode.stat.ephemeral_owner = znode.path == "/c" ? 1 : 0;
  }
  journal.Write(changes);
}

void PutRow(FuzzedDataProvider& in, Sqlite& database) {
  static constexpr const char* kPaths[] = {"/a", "/a/b", "/c", "/d", "/d/e", "/", "/zookeeper", "/a/"};
  std::string path = in.ConsumeBool() ? in.PickValueInArray(kPaths) : in.ConsumeRandomLengthString(12);
  std::string data = in.ConsumeRandomLengthString(12);
  std::string acl = in.ConsumeRandomLengthString(40);
  Statement put(database, "INSERT OR REPLACE INTO znode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  put.BindText(0, path).BindBytes(1, data);
  for (int column = 2; column <= 10; ++column) {
    put.Bind(column,
             in.ConsumeBool() ? in.ConsumeIntegralInRange<int>(-1, 2) : in.ConsumeIntegral<std::int64_t>());
  }
  in.ConsumeBool() ? put.BindBytes(11, acl) : put.BindNull(11);
  put.Run();
  Statement session(database, "INSERT OR REPLACE INTO session VALUES (?, ?, ?)");
  session.Bind(0, in.ConsumeIntegralInRange(0, 2))
      .BindBytes(1, acl)
      .Bind(2, in.ConsumeIntegral<std::int64_t>());
  if (in.ConsumeBool()) session.Run();
  Statement own(database, "INSERT OR REPLACE INTO own_session VALUES (?)");
  own.Bind(0, in.ConsumeIntegralInRange(0, 2)).Run();
}

void Damage(FuzzedDataProvider& in, const fs::path& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  while (in.remaining_bytes() > 0) {
    file.seekp(in.ConsumeIntegralInRange<int>(0, 1 << 15));
    file << in.ConsumeBytesAsString(in.ConsumeIntegralInRange<std::size_t>(1, 16));
  }
}

// What a start makes of the file; a second one makes the same of what the first one stored.
std::size_t Start(const fs::path& path, bool has_change) {
  Engine engine{Engine::Limits{}};
  Journal journal(path);
  Journal::Contents contents = journal.Load();
  engine.Restore(std::move(contents.sessions), std::move(contents.znodes), contents.zxid);
  if (!has_change) return engine.tree().size();
  std::vector<std::int64_t> open;
  for (const auto& [id, session] : engine.sessions()) open.push_back(id);
  for (std::int64_t session : open) engine.CloseSession(session);
  engine.DeleteEmptyContainers();
  journal.Write(engine.TakeChanges());
  return engine.tree().size();
}

}  // namespace
}  // namespace nodepool::zk::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool::zk::server;
  static const fs::path folder = "/dev/shm/journal_fuzz." + std::to_string(getpid());
  static const fs::path path = folder / "state.sqlite";
  fs::create_directories(folder);
  FuzzedDataProvider in(data, size);
  MakeDatabase(path);
  if (in.ConsumeBool()) {
    Sqlite database(path);
    while (in.remaining_bytes() > 0) PutRow(in, database);
  } else {
    Damage(in, path);
  }
  try {
    std::size_t znodes = Start(path, true);
    if (Start(path, false) != znodes) __builtin_trap();
  } catch (const nodepool::Error&) {
  }
  fs::remove_all(folder);
  return 0;
}
