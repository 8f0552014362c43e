// What a node takes in the launcher's memory: its record alone, in the cache, and with the cache's indexes.
// Counted by the allocator, for records as they are in use, with a lock.

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/log/logging.h"
#include "bench/figures.h"
#include "store/cache/cached_records.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::bench {
namespace {

std::string RecordOf(int number) {
  return fmt::format(
      R"({{"state": "in-use", "state_time": 1726605930.2134566, "cloud": "c1", "provider": "cloud-{0}", "pool": "pool-{1}", )"
      R"("type": ["label-{2}"], "allocated_to": "200-{3:010}", "az": "az1", "region": "east", )"
      R"("public_ipv4": "203.0.113.7", "private_ipv4": "10.0.0.7", "public_ipv6": null, "host_id": "6f1c0f4e5a1d-{3:010}", )"
      R"("interface_ip": "203.0.113.7", "connection_port": 22, "ssh_port": 22, )"
      R"("image_id": "/nodepool/images/deb12/builds/4f0e/providers/east/images/0000000001", )"
      R"("launcher": "np01.example.org-PoolWorker.cloud-{0}-pool-{1}-9d1c", "created_time": 1726605881.0254321, )"
      R"("external_id": "9d3c6f1e-51d2-4f64-a4a2-{3:012}", "hostname": "np{3:010}", "comment": null, )"
      R"("user_data": {{"zuul_system": "0f6c1c5e9d", "project_name": "example.org/project"}}, "hold_job": null, )"
      R"("host_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1hkFqgSRRVZHDQ3DvCzRR5pK8o6gTJ2Yxo4R0mS0nH", )"
      R"("ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJ5Oq3m8a1fZ0G7dQw1B"], )"
      R"("username": "zuul", "connection_type": "ssh", "shell_type": null, "hold_expiration": null, )"
      R"("resources": {{"cores": 4, "instances": 1, "ram": 8192}}, "slot": null, )"
      R"("attributes": {{"executor-zone": "east"}}, "python_path": "auto", "tenant_name": "tenant-{4}", )"
      R"("driver_data": null, "requestor": "0f6c1c"}})",
      number % 20, number / 20 % 10, number % 50, number, number % 20);
}

double AllocatedBytes() {
  struct mallinfo2 use = mallinfo2();
  return static_cast<double>(use.uordblks + use.hblkhd);  // the latter: large blocks
}

class MemoryBench {
 public:
  explicit MemoryBench(int nodes) : nodes_(nodes) {}

  Figures Run() {
    figures_.Add("the record as JSON", static_cast<double>(RecordOf(0).size()), "bytes");
    MeasureRecords();
    Furnish();
    MeasureCache();
    return figures_;
  }

 private:
  // Adds what was allocated for each node since `before`.
  void AddSince(double before, std::string name) {
    figures_.Add(std::move(name), (AllocatedBytes() - before) / nodes_, "bytes");
  }

  void MeasureRecords() {
    double before = AllocatedBytes();
    auto records = std::make_unique<std::vector<Node>>();
    records->reserve(static_cast<std::size_t>(nodes_));
    for (int i = 0; i < nodes_; ++i) records->push_back(*ParseNode(RecordOf(i), WallTime()));
    figures_.Add("of the record, its own struct", sizeof(Node), "bytes");
    AddSince(before, "the record in memory");
  }

  void Furnish() {
    auto put = [&](const std::string& path, const std::string& data) {
      zk::CreateOp create{path, data, zk::CreateMode::kPersistent};
      if (!memory_.tree().Create(create, 0, loop_.Now())) throw std::runtime_error("cannot create " + path);
    };
    put("/nodepool", "");
    put("/nodepool/nodes", "");
    for (int i = 0; i < nodes_; ++i) {
      std::string path = fmt::format("/nodepool/nodes/{:010}", i);
      put(path, RecordOf(i));
      put(path + "/lock", "");
      put(path + fmt::format("/lock/{:032x}__lock__0000000000", i), "");
    }
  }

  // Each is made at its first use.
  static void MakeIndexes(const store::NodeCache& cache) {
    PoolKey pool;
    cache.FreeNodes(pool, LabelName());
    cache.FreeCount(LabelName());
    cache.OfRequest(RequestId());
    cache.OfProvider(pool.provider);
    cache.InState(NodeState::kReady);
    cache.HeldByJob();
    cache.HeldBy("nobody");
    cache.UsedBy(pool);
    cache.UsedByTenant("nobody");
  }

  void MeasureCache() {
    std::unique_ptr<zk::Client> client = memory_.Connect();
    double before = AllocatedBytes();
    store::NodeCache cache(loop_, *client);
    cache.Start();
    RunToEnd(loop_, cache.WaitSynced());
    AddSince(before, "the node in the cache");
    MakeIndexes(cache);
    AddSince(before, "the same with indexes");
    cache.Named("nobody");
    AddSince(before, "the same with names, as rules about jobs need them");
    RunToEnd(loop_, cache.Stop());
    RunToEnd(loop_, client->Close());
  }

  int nodes_;
  Loop loop_;
  testing::MemoryZk memory_{loop_};
  Figures figures_;
};

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  nodepool::log::SetLevel("nodepool", nodepool::log::Level::kError);
  int nodes = 10'000;
  std::string figures;
  CLI::App app("Reports what a node takes in memory");
  app.add_option("--nodes", nodes, "so many")->capture_default_str();
  app.add_option("--figures", figures, "write the figures to this file: name, value and unit, with tabs");
  CLI11_PARSE(app, argc, argv);
  nodepool::bench::MemoryBench(nodes).Run().Write(figures);
}
