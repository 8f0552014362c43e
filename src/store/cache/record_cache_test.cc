#include "store/cache/record_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "store/cache/caches.h"
#include "store/store_for_test.h"

namespace nodepool::store {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;

class ReadOnceTest : public ::testing::Test {
 protected:
  void TearDown() override { world_.Run(caches_.Stop()); }

  void PutNode(const std::string& id, const std::string& provider) {
    Node node = InitNode();
    node.provider = ProviderName(provider);
    world_.Put("/nodepool/nodes/" + id, ToJson(node));
  }
  void PutContender(const std::string& node) {
    world_.Put("/nodepool/nodes/" + node + "/lock/00000000000000000000000000000001__lock__0000000000", "");
  }

  World world_;
  Caches caches_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

// operations.16.27
TEST_F(ReadOnceTest, ACacheHasWhatThereIsAndFollowsNothing) {
  for (int i = 0; i < 300; ++i) PutNode(fmt::format("{:010}", i), "cloud");
  PutContender("0000000007");
  world_.Put("/nodepool/nodes/0000000400", "{broken");
  world_.Put("/nodepool/nodes/0000000401", "");
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree));
  EXPECT_EQ(caches_.nodes.all().size(), 300u);
  EXPECT_TRUE(caches_.nodes.Find(NodeId("0000000007"))->is_locked());
  EXPECT_FALSE(caches_.nodes.Find(NodeId("0000000008"))->is_locked());
  EXPECT_EQ(log_.Count("0000000400"), 1);
  EXPECT_THAT(caches_.nodes.empty_nodes(), ElementsAre(NodeId("0000000401")));
  EXPECT_EQ(world_.faulty.CountWrites(), 0u);
  PutNode("0000000500", "cloud");
  world_.time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(caches_.nodes.Find(NodeId("0000000500")), nullptr);
}

// operations.16.27
TEST_F(ReadOnceTest, OfOthersThanThoseWantedNothingElseIsRead) {
  PutNode("0000000001", "east");
  PutNode("0000000002", "west");
  for (const char* node : {"0000000001", "0000000002"}) PutContender(node);
  world_.faulty.ClearCalls();
  IsWanted is_wanted = [](std::string_view text) { return text.find("west") != text.npos; };
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree, is_wanted));
  EXPECT_THAT(caches_.nodes.all(), ElementsAre(Key(NodeId("0000000002"))));
  EXPECT_TRUE(caches_.nodes.all().begin()->second.is_locked());
  std::vector<std::string> listed;
  for (const testing::FaultyZk::Call& call : world_.faulty.calls())
    if (call.name == "GetChildren") listed.push_back(call.path);
  EXPECT_THAT(listed, ElementsAre("/nodepool/nodes", "/nodepool/nodes/0000000002",
                                  "/nodepool/nodes/0000000002/lock"));
}

// operations.16.27
TEST_F(ReadOnceTest, EachKindOfRecordsIsTheSameAsInACacheThatFollows) {
  PutNode("0000000001", "cloud");
  PutContender("0000000001");
  world_.Put("/nodepool/requests/200-0000000001", ToJson(Requested("small")));
  world_.Put("/nodepool/requests-lock/200-0000000001/00000000000000000000000000000001__lock__0000000000", "");
  world_.Put("/nodepool/images/debian/pause", "");
  world_.Put("/nodepool/images/debian/builds/b1", R"({"state": "ready"})");
  world_.Put("/nodepool/images/debian/builds/b1/providers/cloud/images/0000000001", R"({"state": "ready"})");
  Caches following(world_.time.loop(), world_.faulty);
  for (Cache* cache : following.all()) cache->Start();
  world_.Run(following.WaitSynced());
  for (Cache* cache : caches_.all()) world_.Run(cache->ReadOnce(world_.store.tree));
  EXPECT_EQ(caches_.nodes.all().size(), following.nodes.all().size());
  EXPECT_EQ(caches_.requests.all().size(), 1u);
  const auto& directory = caches_.request_locks.all().at(RequestId("200-0000000001"));
  EXPECT_THAT(directory.contenders, ElementsAre("00000000000000000000000000000001__lock__0000000000"));
  EXPECT_EQ(directory.contenders, following.request_locks.all().at(RequestId("200-0000000001")).contenders);
  EXPECT_EQ(caches_.images.builds().size(), following.images.builds().size());
  EXPECT_EQ(caches_.images.uploads().size(), following.images.uploads().size());
  EXPECT_EQ(caches_.images.images(), following.images.images());
  world_.Run(following.Stop());
}

// operations.16.27
TEST_F(ReadOnceTest, AReadIsRepeatedAfterALostConnection) {
  for (int i = 0; i < 50; ++i) PutNode(fmt::format("{:010}", i), "cloud");
  for (std::size_t lost : {0u, 1u, 20u, 51u}) {
    Caches caches(world_.time.loop(), world_.faulty);
    world_.faulty.FailNth(lost, testing::FaultyZk::Fault::kAfter);
    world_.Run(caches.nodes.ReadOnce(world_.store.tree));
    EXPECT_EQ(caches.nodes.all().size(), 50u) << lost;
  }
}

// operations.16.27
TEST_F(ReadOnceTest, TheEndOfTheSessionEndsIt) {
  PutNode("0000000001", "cloud");
  world_.faulty.SetError(Error(Verdict::kLostSession, "expired"));
  world_.faulty.FailNth(1, testing::FaultyZk::Fault::kBefore);
  EXPECT_EQ(VerdictThrown([&] { world_.Run(caches_.nodes.ReadOnce(world_.store.tree)); }),
            Verdict::kLostSession);
  EXPECT_THAT(caches_.nodes.all(), IsEmpty());
}

// operations.16.27
TEST_F(ReadOnceTest, WithoutTheRootThereIsNothing) {
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree));
  EXPECT_THAT(caches_.nodes.all(), IsEmpty());
}

}  // namespace

// --- All that a new kind of record costs ------------------------------------
using TicketId = StrongId<struct TicketIdTag>;
struct Ticket {
  std::string owner;  // empty: nobody's
  std::vector<std::string> topics;
};
struct StoredTicket {
  TicketId id;
  Ticket record;
  Revision revision;
};

// "owner topic topic".
Expected<Ticket> ParseTicket(const std::string& data) {
  std::vector<std::string> words = Split(data, ' ');
  if (words.size() < 2) return Unexpected(Verdict::kInvalid, "no topic");
  Ticket ticket{words[0], {words.begin() + 1, words.end()}};
  return ticket;
}

template <>
struct RecordKind<StoredTicket> {
  using Id = TicketId;
  static constexpr const char* kName = "ticket";
  static constexpr std::string_view kRoot = "/nodepool/tickets";
  static std::string Path(const TicketId& id) { return fmt::format("{}/{}", kRoot, id); }
  static std::optional<TicketId> IdIn(std::string_view path) {
    std::string name = paths::Below(kRoot, path);
    return name.find('/') == name.npos ? std::optional(TicketId(name)) : std::nullopt;
  }
  static Expected<Ticket> Parse(const TicketId&, const std::string& data, WallTime) {
    return ParseTicket(data);
  }
};

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One that is found by more than its id.
class TicketCache : public RecordCache<StoredTicket> {
 public:
  using RecordCache::RecordCache;

  struct Words {
    std::size_t topics = 0;
    void Add(const StoredTicket& ticket) { topics += ticket.record.topics.size(); }
    void Remove(const StoredTicket& ticket) { topics -= ticket.record.topics.size(); }
    bool empty() const { return topics == 0; }
  };
  using Ids = std::set<TicketId>;

  const Ids& About(const std::string& topic) const { return by_topic_.EntryOf(topic); }
  const std::map<std::string, Ids>& by_owner() const { return by_owner_.entries(); }
  std::size_t TopicsOf(const std::string& owner) const { return words_.EntryOf(owner).topics; }
  std::size_t CountOf(std::size_t topics) const { return by_size_.EntryOf(topics).count; }

 private:
  static const std::string& OwnerOf(const StoredTicket& ticket) { return ticket.record.owner; }

  RecordIndex<StoredTicket, std::string> by_topic_{
      records_, [](const StoredTicket& ticket) {
        return std::set<std::string>(ticket.record.topics.begin(), ticket.record.topics.end());
      }};
  RecordIndex<StoredTicket, std::string> by_owner_{records_, [](const StoredTicket& ticket) {
                                                     const std::string& owner = ticket.record.owner;
                                                     return owner.empty() ? std::nullopt
                                                                          : std::optional(owner);
                                                   }};
  RecordIndex<StoredTicket, std::string, Words> words_{records_, OwnerOf};
  RecordIndex<StoredTicket, std::size_t, RecordCount> by_size_{
      records_, [](const StoredTicket& ticket) { return ticket.record.topics.size(); }};
};

class RecordCacheTest : public ::testing::Test {
 protected:
  void TearDown() override { world_.Run(cache_.Stop()); }
  void Sync() {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
  }
  void Settle() { world_.time.Advance(std::chrono::milliseconds(1)); }
  static std::string PathOf(int number) { return fmt::format("/nodepool/tickets/{}", number); }
  static TicketId IdOf(int number) { return TicketId(fmt::format("{}", number)); }
  void Put(int number, const std::string& data) {
    world_.Put(PathOf(number), data);
    Settle();
  }
  // As Put, by another client, so that the cache learns it later.
  Task<> Write(zk::Client& client, std::string path, std::string data) {
    co_await zk::EnsurePath(client, zk::ParentPath(path));
    zk::Result<zk::Created> created = co_await client.Create(path, data, zk::CreateMode::kPersistent);
    if (!created) co_await client.Set(path, data, -1);
  }

  std::map<std::string, std::string> Listed() const {
    std::map<std::string, std::string> listed;
    for (const auto& [id, ticket] : cache_.all())
      listed[id.value] = ticket.record.owner + " " + Join(ticket.record.topics, " ");
    return listed;
  }
  // What is readable in the tree.
  std::map<std::string, std::string> Stored() {
    std::map<std::string, std::string> stored;
    for (const std::string& name : world_.Children("/nodepool/tickets")) {
      std::string data = world_.Data("/nodepool/tickets/" + name);
      if (ParseTicket(data)) stored[name] = data;
    }
    return stored;
  }

  // Puts, changes, breaks or erases one of twenty records.
  void ChangeSomething(Random& random) {
    auto pick = [&](std::vector<std::string> words) { return words[random.Below(words.size())]; };
    int number = static_cast<int>(random.Below(20));
    if (random.Below(4) == 0 && world_.Exists(PathOf(number))) return world_.Erase(PathOf(number));
    std::string data = pick({"", "ci", "docs"});
    for (std::uint64_t i = random.Below(4); i > 0; --i) data += " " + pick({"a", "b", "c"});
    world_.Put(PathOf(number), data);
  }
  void ExpectIndexesMatch() const {
    std::map<std::string, TicketCache::Ids> by_topic, by_owner;
    std::map<std::string, std::size_t> topics_of;
    std::map<std::size_t, std::size_t> count_of;
    for (const auto& [id, ticket] : cache_.all()) {
      for (const std::string& topic : ticket.record.topics) by_topic[topic].insert(id);
      if (!ticket.record.owner.empty()) by_owner[ticket.record.owner].insert(id);
      topics_of[ticket.record.owner] += ticket.record.topics.size();
      ++count_of[ticket.record.topics.size()];
    }
    for (const char* topic : {"a", "b", "c"}) EXPECT_EQ(cache_.About(topic), by_topic[topic]) << topic;
    EXPECT_EQ(cache_.by_owner(), by_owner) << "entries without ids are gone";
    for (const char* owner : {"", "ci", "docs"}) EXPECT_EQ(cache_.TopicsOf(owner), topics_of[owner]) << owner;
    for (std::size_t size : {1u, 2u, 3u}) EXPECT_EQ(cache_.CountOf(size), count_of[size]) << size;
  }

  World world_;
  TicketCache cache_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

TEST_F(RecordCacheTest, IndexesEqualACountOverAllRecords) {
  SeededRandom random(4);
  Sync();
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 5; ++i) ChangeSomething(random);
    Settle();
    EXPECT_EQ(Listed(), Stored());
    ExpectIndexesMatch();
  }
}

// They are made at their first use, of what is there then.
TEST_F(RecordCacheTest, AnIndexThatIsUsedLateKnowsTheSame) {
  SeededRandom random(5);
  Sync();
  for (int i = 0; i < 60; ++i) ChangeSomething(random);
  Settle();
  ExpectIndexesMatch();
  for (int i = 0; i < 60; ++i) ChangeSomething(random);
  Settle();
  ExpectIndexesMatch();
}

TEST_F(RecordCacheTest, ListenersSeeWhatWasAndIndexesThatAreUpToDate) {
  Sync();
  std::vector<std::string> seen;
  auto owner_of = [](const StoredTicket* ticket) { return ticket != nullptr ? ticket->record.owner : "-"; };
  Subscription changes =
      cache_.OnChange([&](const TicketId& id, const StoredTicket* before, const StoredTicket* after) {
        seen.push_back(fmt::format("{}: {} -> {}, {} about a", id, owner_of(before), owner_of(after),
                                   cache_.About("a").size()));
        EXPECT_EQ(cache_.Find(id), after);
      });
  Put(1, "ci a");
  Put(1, "docs b");
  Put(1, "malformed");
  Put(1, "still-malformed");
  Put(1, "docs a");
  world_.Erase(PathOf(1));
  Settle();
  EXPECT_THAT(seen,
              ElementsAre("1: - -> ci, 1 about a", "1: ci -> docs, 0 about a", "1: docs -> -, 0 about a",
                          "1: - -> docs, 1 about a", "1: docs -> -, 0 about a"));
}

// D-08
TEST_F(RecordCacheTest, WhatCannotBeReadIsReportedOncePerVersionAndNotListed) {
  world_.Put(PathOf(1), "malformed");
  world_.Put(PathOf(2), "");
  world_.Put(PathOf(3) + "/lock", "of no kind");
  Sync();
  EXPECT_THAT(Listed(), IsEmpty());
  EXPECT_EQ(cache_.malformed_count(), 3u) << "3 is a znode without data";
  EXPECT_EQ(log_.Count("/nodepool/tickets/1 is ignored until it is fixed or deleted: ticket 1: no topic"), 1);
  EXPECT_EQ(log_.Count("ticket 2: the record has no data"), 1);
  EXPECT_TRUE(cache_.IsMalformed(IdOf(1)));
  world_.memory.Disconnect(*world_.client);
  world_.memory.Reconnect(*world_.client);
  world_.Run(cache_.WaitSynced());
  EXPECT_EQ(cache_.malformed_count(), 3u);
  Put(1, "ci a");
  EXPECT_FALSE(cache_.IsMalformed(IdOf(1)));
  EXPECT_THAT(cache_.About("a"), ElementsAre(IdOf(1)));
  Put(1, "malformed");
  EXPECT_EQ(cache_.malformed_count(), 4u);
  EXPECT_THAT(cache_.About("a"), IsEmpty());
  world_.Erase(PathOf(1));
  Settle();
  EXPECT_FALSE(cache_.IsMalformed(IdOf(1)));
}

TEST_F(RecordCacheTest, FollowsWhatChangedWhileTheSessionWasLost) {
  for (int i = 0; i < 4; ++i) world_.Put(PathOf(i), "ci a");
  Sync();
  std::vector<std::string> seen;
  Subscription changes =
      cache_.OnChange([&](const TicketId& id, const StoredTicket* before, const StoredTicket* after) {
        if (before != nullptr && after != nullptr && before->record.owner == after->record.owner) return;
        seen.push_back(id.value + (before != nullptr ? " was" : "") + (after != nullptr ? " is" : ""));
      });
  world_.memory.Disconnect(*world_.client);
  world_.memory.ExpireSession(*world_.client);
  Settle();
  EXPECT_FALSE(cache_.synced());
  EXPECT_EQ(cache_.all().size(), 4u) << "as last seen";
  world_.Put(PathOf(0), "docs b");
  world_.Erase(PathOf(1));
  world_.Put(PathOf(2), "malformed");
  world_.Put(PathOf(4), "ci b");
  world_.memory.Reconnect(*world_.client);
  world_.Run(cache_.WaitSynced());
  EXPECT_EQ(Listed(), Stored());
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("0 was is", "1 was", "2 was", "4 is"));
  EXPECT_THAT(cache_.About("b"), ElementsAre(IdOf(0), IdOf(4)));
}

TEST_F(RecordCacheTest, CatchUpShowsWhatAnotherClientWroteBefore) {
  Sync();
  std::unique_ptr<zk::Client> other = world_.memory.Connect();
  world_.time.RunUntil([&] { return other->state() == zk::SessionState::kConnected; });
  world_.memory.SetLatency(std::chrono::milliseconds(50));
  for (int i = 0; i < 5; ++i) {
    world_.Run(Write(*other, PathOf(1), fmt::format("ci a{}", i)));
    world_.Run(cache_.CatchUp());
    EXPECT_EQ(Listed(), Stored());
  }
  world_.Run(other->Close());
}

// The walk takes many answers, and each of them is old when it arrives.
TEST_F(RecordCacheTest, ChangesDuringTheFirstWalkAreNotLost) {
  SeededRandom random(6);
  for (int round = 0; round < 10; ++round) {
    World world;
    for (int i = 0; i < 20; ++i) world.Put(PathOf(i), "ci a");
    world.memory.SetLatency(std::chrono::milliseconds(10));
    TicketCache cache(world.time.loop(), world.faulty);
    cache.Start();
    while (!cache.synced()) {
      int number = static_cast<int>(random.Below(25));
      bool erases = random.Below(3) == 0 && world.Exists(PathOf(number));
      if (erases) world.Erase(PathOf(number));
      if (!erases) world.Put(PathOf(number), "docs b");
      world.time.Advance(std::chrono::milliseconds(3));
    }
    world.Run(cache.CatchUp());
    std::set<std::string> listed;
    for (const auto& [id, ticket] : cache.all()) {
      EXPECT_EQ(ticket.record.owner + " " + ticket.record.topics[0], world.Data(PathOf(std::stoi(id.value))));
      listed.insert(id.value);
    }
    EXPECT_THAT(world.Children("/nodepool/tickets"), ::testing::ElementsAreArray(listed));
    EXPECT_EQ(cache.About("a").size() + cache.About("b").size(), cache.all().size());
    world.Run(cache.Stop());
  }
}

}  // namespace

}  // namespace nodepool::store
