#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/virtual_time.h"
#include "base/subscription.h"
#include "zk/recipes/tree_cache.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {

// Retains what was reported and checks that it is consistent.
class View : public TreeCache::Listener {
 public:
  // Lock directories and what is in them matter only by existing, what ends with "-aside" does not matter.
  TreeCache::Interest InterestIn(std::string_view path) const override {
    if (path.ends_with("-aside")) return TreeCache::Interest::kNone;
    bool is_lock = path.find("/lock") != std::string_view::npos;
    return is_lock ? TreeCache::Interest::kExistence : TreeCache::Interest::kData;
  }
  void OnNode(const std::string& path, const NodeData& node) override {
    if (failures > 0 && failures-- > 0) throw std::bad_alloc();
    log.push_back("+" + path + (node.data.empty() ? "" : "=" + node.data));
    EXPECT_NE(InterestIn(path), TreeCache::Interest::kNone) << path;
    if (InterestIn(path) == TreeCache::Interest::kData) {
      EXPECT_GT(node.stat.mzxid, last_mzxid[path]) << path << " went back or was reported twice";
      last_mzxid[path] = node.stat.mzxid;
    } else {
      EXPECT_FALSE(nodes.contains(path)) << path << " was reported twice";
    }
    nodes[path] = node.data;
  }
  void OnGone(const std::string& path) override {
    log.push_back("-" + path);
    EXPECT_EQ(nodes.erase(path), 1u) << path << " was not known";
  }
  void OnSynced() override { ++times_synced; }

  std::vector<std::string> TakeLog() { return std::exchange(log, {}); }

  std::map<std::string, std::string> nodes;
  std::map<std::string, std::int64_t> last_mzxid;
  std::vector<std::string> log;
  int times_synced = 0;
  int failures = 0;  // of the next calls
};

class TreeCacheTest : public ::testing::Test {
 protected:
  ~TreeCacheTest() override { time.Run(cache.Stop()); }

  void Create(std::string path, std::string data = "", CreateMode mode = CreateMode::kPersistent) {
    (void)zk.tree().Create(CreateOp{std::move(path), std::move(data), mode}, 0, time.loop().Now());
  }
  void Set(std::string path, std::string data) {
    (void)zk.tree().Set(SetOp{std::move(path), std::move(data)}, 0, time.loop().Now());
  }
  void Delete(std::string path) { (void)zk.tree().Delete(DeleteOp{std::move(path)}, 0); }

  void Start() {
    cache.Start();
    time.Run(cache.WaitSynced());
  }
  void Settle() { time.Advance(std::chrono::seconds(60)); }

  // What the view should hold.
  std::map<std::string, std::string> Truth(const std::string& path = "/r") {
    std::map<std::string, std::string> truth;
    Result<Children> children = zk.tree().GetChildren(path);
    if (!children) return truth;
    for (const std::string& name : children->names) {
      std::string child = path + "/" + name;
      TreeCache::Interest interest = view.InterestIn(child);
      if (interest != TreeCache::Interest::kNone) truth[child] = "";
      if (interest == TreeCache::Interest::kData) truth[child] = zk.tree().Get(child)->data;
      truth.merge(Truth(child));
    }
    return truth;
  }

  testing::VirtualTime time;
  testing::MemoryZk zk{time.loop()};
  std::unique_ptr<Client> client = zk.Connect();
  testing::FaultyZk faulty{*client};
  View view;
  TreeCache cache{time.loop(), faulty, "/r", view};
  // In a new session everything is reported again.
  Subscription of_session = client->OnSession([this](SessionState state) {
    if (state == SessionState::kLost) view.last_mzxid.clear();
  });
};

}  // namespace nodepool::zk
