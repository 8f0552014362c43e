#include "store/cache/cached_records.h"

#include <gtest/gtest.h>

#include <ranges>

#include "store/store_for_test.h"

namespace nodepool::store {

namespace {

template <class Cache>
struct Following {
  explicit Following(World& w) : world(w), cache(w.time.loop(), w.faulty) {
    cache.Start();
    w.Run(cache.WaitSynced());
  }
  ~Following() { world.Run(cache.Stop()); }
  World& world;
  Cache cache;
};

std::string Id(std::uint64_t number) { return fmt::format("{:010}", number); }

// A node record with random values, from a small set, in all fields that the indexes use.
Node RandomNode(Random& random) {
  auto pick = [&](std::vector<std::string> words) { return words[random.Below(words.size())]; };
  Node node;
  node.state = *ParseNodeState(pick({"ready", "ready", "in-use", "building", "hold"}));
  node.provider = ProviderName(pick({"p1", "p2", ""}));
  node.pool = PoolName(pick({"a", "b"}));
  for (std::uint64_t i = random.Below(3); i > 0; --i) node.type.emplace_back(pick({"small", "large"}));
  node.allocated_to = RequestId(pick({"", "", "200-1", "200-2"}));
  if (random.Below(2) == 0) node.tenant_name = pick({"t1", "t2"});
  if (random.Below(3) != 0) {
    node.resources = Resources{{"cores", static_cast<double>(random.Below(5))}, {"share", 0.1}, {"ram", 0.3}};
  }
  return node;
}

std::string Text(const Resources& resources) {
  std::string text;
  for (const auto& [name, amount] : resources) text += fmt::format("{}={:.6f} ", name, amount);
  return text;
}

// Compares the cache's indexes with a count over all records. `aside`: the nodes set aside.
void ExpectIndexesMatch(const NodeCache& cache, const std::set<NodeId>& aside) {
  for (std::string provider : {"p1", "p2", ""}) {
    std::set<NodeId> of_provider;
    std::set<PoolName> pools;
    Resources used_by_all;
    std::map<PoolName, std::map<LabelName, int>> unknown_of_all;
    for (std::string pool_name : {"a", "b"}) {
      PoolKey pool{ProviderName(provider), PoolName(pool_name)};
      Resources used;
      std::map<LabelName, int> unknown;
      std::map<LabelName, std::set<NodeId>> free;
      for (const auto& [id, node] : cache.all()) {
        if (node.record.provider != pool.provider || node.record.pool != pool.pool) continue;
        of_provider.insert(id);
        pools.insert(pool.pool);
        if (node.record.resources) {
          for (const auto& [name, amount] : *node.record.resources) used[name] += amount;
        } else {
          ++unknown[node.record.type.empty() ? LabelName() : node.record.type.front()];
        }
        if (!node.record.is_free() || aside.contains(id)) continue;
        for (const LabelName& label : node.record.type) free[label].insert(id);
      }
      std::erase_if(used, [](const auto& entry) { return entry.second == 0; });
      EXPECT_EQ(Text(cache.UsedBy(pool)), Text(used));
      EXPECT_EQ(cache.WithoutResources(pool), unknown);
      Add(used_by_all, used);
      if (!unknown.empty()) unknown_of_all[pool.pool] = unknown;
      for (std::string label : {"small", "large"}) {
        EXPECT_EQ(cache.FreeNodes(pool, LabelName(label)), free[LabelName(label)]);
      }
    }
    std::erase_if(used_by_all, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(Text(cache.UsedBy(ProviderName(provider))), Text(used_by_all));
    EXPECT_EQ(cache.WithoutResources(ProviderName(provider)), unknown_of_all);
    EXPECT_EQ(cache.OfProvider(ProviderName(provider)), of_provider);
    auto listed = std::views::keys(cache.PoolsWithNodes(ProviderName(provider)));
    EXPECT_EQ(std::set<PoolName>(listed.begin(), listed.end()), pools);
  }
  for (std::string tenant : {"t1", "t2"}) {
    Resources used;
    for (const auto& [id, node] : cache.all()) {
      if (node.record.tenant_name != tenant || !node.record.resources) continue;
      for (const auto& [name, amount] : *node.record.resources) used[name] += amount;
    }
    std::erase_if(used, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(Text(cache.UsedByTenant(tenant)), Text(used));
  }
  for (std::string label : {"small", "large"}) {
    auto carries = [&](const auto& entry) {
      return entry.second.record.is_free() && entry.second.record.has_label(LabelName(label));
    };
    EXPECT_EQ(cache.FreeCount(LabelName(label)),
              static_cast<std::size_t>(std::ranges::count_if(cache.all(), carries)));
  }
  for (std::string request : {"200-1", "200-2"}) {
    FewNodes expected;
    for (const auto& [id, node] : cache.all()) {
      if (node.record.allocated_to.str() == request) expected.insert(id);
    }
    EXPECT_EQ(cache.OfRequest(RequestId(request)), expected);
  }
  std::size_t in_states = 0;
  for (NodeState state : {NodeState::kReady, NodeState::kInUse, NodeState::kBuilding, NodeState::kHold}) {
    in_states += cache.InState(state).size();
  }
  EXPECT_EQ(in_states, cache.all().size());
}

TEST(NodeCache, IndexesEqualACountOverAllRecords) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World w;
    SeededRandom random(seed);
    w.Put("/nodepool/nodes", "");
    Following<NodeCache> following(w);
    std::size_t heard = 0;
    Subscription registration =
        following.cache.OnChange([&](const NodeId& id, const StoredNode* before, const StoredNode* after) {
          ++heard;
          EXPECT_TRUE(before != nullptr || after != nullptr);
          EXPECT_EQ(following.cache.Find(id), after);
        });
    std::set<NodeId> aside;
    for (int step = 0; step < 60; ++step) {
      if (random.Below(4) == 0) {
        NodeId id(Id(random.Below(12)));
        if (aside.erase(id) != 0) {
          following.cache.PutBack(id);
        } else {
          aside.insert(id);
          following.cache.SetAside(id);
        }
      }
      std::string path = "/nodepool/nodes/" + Id(random.Below(12));
      std::uint64_t kind = random.Below(10);
      if (kind < 2 && w.Exists(path)) {
        w.Erase(path);
      } else if (kind == 2) {
        w.Put(path, "{\"state\": \"bogus\"}");
      } else if (kind == 3) {
        w.Put(path, "");
      } else {
        w.Put(path, ToJson(RandomNode(random)));
      }
      if (random.Below(3) == 0) continue;  // several changes at once
      w.time.Advance(std::chrono::milliseconds(1));
      ExpectIndexesMatch(following.cache, aside);
    }
    EXPECT_GT(heard, 0u);
    {
      Following<NodeCache> asked_late(w);
      ExpectIndexesMatch(asked_late.cache, {});
    }
    for (const std::string& child : w.Children("/nodepool/nodes")) w.Erase("/nodepool/nodes/" + child);
    w.time.Advance(std::chrono::milliseconds(1));
    EXPECT_TRUE(following.cache.all().empty());
    ExpectIndexesMatch(following.cache, aside);
  }
}

TEST(NodeCache, KnowsContendersWithoutReadingAnything) {  // OT-7
  World w;
  LockedNode node = w.Run(w.store.nodes.CreateLocked(InitNode(), ToState(NodeState::kBuilding)));
  Following<NodeCache> following(w);
  ASSERT_NE(following.cache.Find(node.id()), nullptr);
  EXPECT_EQ(following.cache.Find(node.id())->contenders.size(), 1u);
  w.memory.Disconnect(*w.client);
  w.memory.Reconnect(*w.client);
  w.Run(following.cache.WaitSynced());
  EXPECT_EQ(following.cache.Find(node.id())->contenders.size(), 1u) << "the tree was read again";
  bool was_locked = false;
  bool is_locked = true;
  Subscription registration =
      following.cache.OnChange([&](const NodeId&, const StoredNode* before, const StoredNode* after) {
        was_locked = before->is_locked();
        is_locked = after->is_locked();
      });
  w.Run(node.Unlock());
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(was_locked);
  EXPECT_FALSE(is_locked);
  // coordination.17.16: a name that is no contender locks nothing.
  w.Put("/nodepool/nodes/" + node.id().str() + "/lock/x__rlock__0000000003", "");
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(following.cache.Find(node.id())->is_locked());
}

TEST(NodeCache, KnowsContendersOfANodeWhoseRecordCannotBeReadMeanwhile) {
  World w;
  w.Put("/nodepool/nodes", "");
  Following<NodeCache> following(w);
  NodeId id(Id(0));
  std::string path = "/nodepool/nodes/" + id.str();
  auto contender = [&](int number) { return path + fmt::format("/lock/x__lock__{:010}", number); };
  auto put = [&](const std::string& where, const std::string& data) {
    w.Put(where, data);
    w.time.Advance(std::chrono::milliseconds(1));
  };
  put(path, "{");
  put(path + "/lock", "");
  put(contender(0), "");
  put(path, ToJson(InitNode()));
  EXPECT_EQ(following.cache.Find(id)->contenders.size(), 1u) << "seen before the record could be read";
  put(path, "{{");
  ASSERT_EQ(following.cache.Find(id), nullptr);
  put(contender(1), "");
  put(path, ToJson(InitNode()));
  EXPECT_EQ(following.cache.Find(id)->contenders.size(), 2u);
  put(path, "{{{");
  w.Erase(contender(0));
  w.time.Advance(std::chrono::milliseconds(1));
  put(path, ToJson(InitNode()));
  EXPECT_EQ(following.cache.Find(id)->contenders.size(), 1u);
}

TEST(NodeCache, OfManyContendersOnlyTheFirstAndTheLastAreReported) {
  World w;
  w.Put("/nodepool/nodes", "");
  Following<NodeCache> following(w);
  NodeId id(Id(0));
  std::string path = "/nodepool/nodes/" + id.str();
  w.Put(path, ToJson(InitNode()));
  w.Put(path + "/lock", "");
  auto settle = [&] { w.time.Advance(std::chrono::milliseconds(1)); };
  settle();
  std::vector<std::string> changes;
  Subscription watch = following.cache.OnChange([&](const NodeId&, const auto* before, const auto* after) {
    auto text = [](const StoredNode& node) { return node.is_locked() ? "locked" : "free"; };
    changes.push_back(fmt::format("{} -> {}", text(*before), text(*after)));
    EXPECT_LE(before->contenders.size(), 1u);
  });
  auto contender = [&](int number) { return path + fmt::format("/lock/x__lock__{:010}", number); };
  for (int i = 0; i < 3; ++i) w.Put(contender(i), "");
  settle();
  EXPECT_EQ(changes, std::vector<std::string>{"free -> locked"});
  w.Put(path, ToJson(InitNode()));
  settle();
  EXPECT_EQ(following.cache.Find(id)->contenders.size(), 3u) << "a change of the record keeps them";
  for (int i = 0; i < 3; ++i) w.Erase(contender(i));
  settle();
  EXPECT_EQ(changes, (std::vector<std::string>{"free -> locked", "locked -> locked", "locked -> free"}));
}

// D-08, coordination.17.22
TEST(NodeCache, MalformedRecordsAreReportedOncePerVersionAndSkipped) {
  World w;
  w.Put("/nodepool/nodes", "");
  Following<NodeCache> following(w);
  log::Capture capture;
  std::vector<std::string> bad = {"{",
                                  "\xff\xfe",
                                  "[]",
                                  "{\"state\": \"bogus\"}",
                                  "{\"type\": {}}",
                                  std::string(1 << 20, '['),
                                  "{\"resources\": {\"cores\": -4}}"};
  for (std::size_t i = 0; i < bad.size(); ++i) w.Put("/nodepool/nodes/" + Id(i), bad[i]);
  w.Put("/nodepool/nodes/" + Id(90), "");
  w.Put("/nodepool/nodes/" + Id(91), ToJson(InitNode()));
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.all().size(), 1u);
  EXPECT_EQ(following.cache.malformed_count(), bad.size());
  EXPECT_EQ(capture.Count("is ignored until it is fixed or deleted"), static_cast<int>(bad.size()));
  EXPECT_EQ(following.cache.empty_nodes(), std::set<NodeId>{NodeId(Id(90))});
  w.Put("/nodepool/nodes/" + Id(0), "{{");
  w.Put("/nodepool/nodes/" + Id(1), ToJson(InitNode()));
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.malformed_count(), bad.size() + 1);
  EXPECT_EQ(following.cache.all().size(), 2u);
  // A walk after a reconnection reports nothing new.
  w.memory.Disconnect(*w.client);
  w.memory.Reconnect(*w.client);
  w.Run(following.cache.WaitSynced());
  EXPECT_EQ(following.cache.malformed_count(), bad.size() + 1);
}

TEST(RequestCache, ListsWellFormedRequestsByState) {
  World w;
  RequestId first = w.Run(w.store.requests.Create("200", Requested("small"), false));
  Following<RequestCache> following(w);
  log::Capture capture;
  w.Put("/nodepool/requests/malformed", ToJson(Requested("small")));
  w.Put("/nodepool/requests/200-1-2", ToJson(Requested("small")));
  w.Put("/nodepool/requests/200-0000000007", "");
  w.Put("/nodepool/requests/200-0000000008", "{\"node_types\": 1}");
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.all().size(), 1u);
  EXPECT_EQ(following.cache.malformed_count(), 4u);
  EXPECT_EQ(capture.Count("is ignored until"), 4);
  EXPECT_EQ(following.cache.InState(RequestState::kRequested), std::set<RequestId>{first});
  std::optional<LockedRequest> locked =
      w.Run(w.store.requests.Accept(*following.cache.Find(first), ToState(RequestState::kPending)));
  ASSERT_TRUE(locked);
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(following.cache.InState(RequestState::kRequested).empty());
  EXPECT_EQ(following.cache.InState(RequestState::kPending), std::set<RequestId>{first});
  w.Run(w.store.requests.Delete(first));
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.Find(first), nullptr);
  EXPECT_TRUE(following.cache.InState(RequestState::kPending).empty());
}

// D-06: requests whose lock directory is empty are known without a read.
TEST(RequestLockCache, FollowsDirectoriesAndContenders) {
  World w;
  RequestId id = w.Run(w.store.requests.Create("200", Requested("small"), false));
  Following<RequestLockCache> following(w);
  EXPECT_FALSE(following.cache.IsLocked(id));
  LockedRequest locked = std::move(*w.Run(w.store.requests.TryLock(id)));
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(following.cache.IsLocked(id));
  w.Run(locked.Unlock());
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(following.cache.IsLocked(id));
  EXPECT_TRUE(following.cache.all().contains(id));
  w.Run(w.store.requests.Delete(id));
  w.Run(w.store.requests.RemoveLocks({id}));
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(following.cache.all().empty());
}

TEST(ImageCache, KnowsBusyBuildersAndBuildRequests) {
  World w;
  Following<ImageCache> following(w);
  const ImageCache& cache = following.cache;
  ImageName image("deb12");
  BuildKey build{image, BuildId("b")};
  ProviderName east("east");
  auto settle = [&] { w.time.Advance(std::chrono::milliseconds(1)); };
  EXPECT_FALSE(cache.IsBuildLocked(image));
  std::optional<zk::HeldLock> lock = w.Run(w.store.images.TryLock(image));
  w.Put("/nodepool/images/deb12/builds/b", R"({"state": "ready", "state_time": 1})");
  std::optional<zk::HeldLock> uploads = w.Run(w.store.images.TryLockUploads(build, east));
  w.Run(w.store.images.RequestBuild(image));
  w.Put("/nodepool/images/deb12/builds/empty/lock", "");
  settle();
  EXPECT_TRUE(cache.IsBuildLocked(image));
  EXPECT_TRUE(cache.IsUploadLocked(build, east));
  EXPECT_FALSE(cache.IsUploadLocked(build, ProviderName("west")));
  ASSERT_TRUE(cache.build_requests().contains(image));
  EXPECT_LT(w.time.loop().Now() - cache.build_requests().at(image), std::chrono::seconds(1));
  EXPECT_EQ(cache.empty_builds().size(), 1u);
  EXPECT_EQ(cache.malformed_count(), 0u);
  w.Run(w.store.tree.Unlock(*lock));
  w.Run(w.store.tree.Unlock(*uploads));
  w.Erase("/nodepool/images/deb12/request-build");
  w.Erase("/nodepool/images/deb12/builds/empty");
  settle();
  EXPECT_FALSE(cache.IsBuildLocked(image));
  EXPECT_FALSE(cache.IsUploadLocked(build, east));
  EXPECT_TRUE(cache.build_requests().empty());
  EXPECT_TRUE(cache.empty_builds().empty());
}

TEST(ImageCache, FindsTheNewestReadyUpload) {
  World w;
  Following<ImageCache> following(w);
  std::string builds = "/nodepool/images/deb12/builds/";
  auto upload = [&](const std::string& build, const std::string& number, double time, const char* state) {
    w.Put(builds + build, R"({"state": "ready", "state_time": 1})");
    w.Put(builds + build + "/providers/east/images/" + number,
          fmt::format(R"({{"state": "{}", "state_time": {}, "external_id": "{}{}"}})", state, time, build,
                      number));
    w.time.Advance(std::chrono::milliseconds(1));
  };
  ImageName image("deb12");
  ProviderName east("east");
  upload("b", "0000000001", 10, "ready");
  upload("a", "0000000001", 20, "ready");
  upload("c", "0000000001", 30, "uploading");
  ASSERT_NE(following.cache.NewestReadyUpload(image, east), nullptr);
  EXPECT_EQ(following.cache.NewestReadyUpload(image, east)->record.external_id, "a0000000001");
  upload("c", "0000000001", 31, "ready");
  EXPECT_EQ(following.cache.NewestReadyUpload(image, east)->record.external_id, "c0000000001");
  w.Erase(builds + "c");
  w.Put(builds + "lock/x__lock__0000000000", "");
  w.Put("/nodepool/images/deb12/pause", "");
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.NewestReadyUpload(image, east)->record.external_id, "a0000000001");
  EXPECT_EQ(following.cache.NewestReadyUpload(image, ProviderName("west")), nullptr);
  EXPECT_EQ(following.cache.builds().size(), 2u);
  EXPECT_EQ(following.cache.uploads().size(), 2u);
  EXPECT_TRUE(following.cache.paused().contains(image));
  EXPECT_EQ(following.cache.images(), std::set<ImageName>{image});
  w.Put(builds + "a", "");
  w.time.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(following.cache.builds().size(), 1u);
}

TEST(ImageCache, ReportsWhatBuildsAndUploadsWere) {
  World w;
  Following<ImageCache> following(w);
  std::vector<std::string> changes;
  auto note = [&changes](const auto& key, const auto* before, const auto* after) {
    auto text = [](const auto* stored) {
      return stored == nullptr ? "none" : ToString(*stored->record.state);
    };
    changes.push_back(fmt::format("{}: {} -> {}", key.str(), text(before), text(after)));
  };
  Subscription builds = following.cache.OnBuild(note);
  Subscription uploads = following.cache.OnUpload(note);
  const std::string build = "/nodepool/images/deb12/builds/b";
  const std::string upload = build + "/providers/east/images/0000000001";
  auto put = [&](const std::string& path, const std::string& data) {
    w.Put(path, data);
    w.time.Advance(std::chrono::milliseconds(1));
  };
  put(build, R"({"state": "building", "state_time": 1})");
  put(build, R"({"state": "ready", "state_time": 2})");
  put(upload, R"({"state": "uploading", "state_time": 3})");
  put(upload, R"({"state": "ready", "state_time": 4})");
  put(upload, "{");
  put(upload, "{{");
  put(build, "");
  EXPECT_EQ(changes, (std::vector<std::string>{"deb12-b: none -> building", "deb12-b: building -> ready",
                                               "deb12-b in east: 0000000001: none -> uploading",
                                               "deb12-b in east: 0000000001: uploading -> ready",
                                               "deb12-b in east: 0000000001: ready -> none",
                                               "deb12-b: ready -> none"}));
  EXPECT_EQ(following.cache.NewestReadyUpload(ImageName("deb12"), ProviderName("east")), nullptr);
}

}  // namespace

}  // namespace nodepool::store
