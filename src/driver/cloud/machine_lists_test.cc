#include "driver/cloud/machine_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Server {
  std::map<std::string, std::string> metadata;
  int number = 0;
};
using ServerLists = MachineLists<Server>;

class MachineListsTest : public ::testing::Test {
 protected:
  MachineListsTest() { time.Advance(1min); }
  ~MachineListsTest() override { time.Run(tasks.Stop()); }

  Task<ServerLists::Machines> Read(std::string place) {
    ++reads[place];
    Duration takes = silent.contains(place) ? Duration(1h) : Duration(10ms);
    co_await time.loop().SleepFor(takes);
    co_return cloud[place];
  }
  // External ids are "place/key".
  static MachineKey KeyOf(const boost::json::value& id) {
    std::string text(id.as_string());
    std::size_t slash = text.find('/');
    return {text.substr(0, slash), text.substr(slash + 1)};
  }
  static Server Made(int number, const char* provider = "p") { return {{{kProviderKey, provider}}, number}; }
  std::vector<boost::json::value> Missing(std::vector<boost::json::value> ids) {
    return time.Run(lists.Missing(std::move(ids)));
  }
  std::optional<Resources> OwnUse() {
    return time.Run(lists.OwnUse([](const Server& machine) { return Resources{{"n", machine.number}}; }));
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  BlockingPool pool{0};
  TaskGroup tasks{time.loop(), log::Logger("test")};
  std::map<std::string, ServerLists::Machines> cloud = {{"a", {{"m1", Made(1)}, {"m2", Made(2, "others")}}},
                                                        {"b", {{"m3", Made(3)}}}};
  std::set<std::string> silent;  // places whose lists are not answered
  std::map<std::string, int> reads;
  DriverEnvironment environment{time.loop(), random, pool};
  ServerLists lists{environment, tasks, log::Logger("test"),
                    ServerLists::Source{"machines of provider p",
                                        ProviderName("p"),
                                        {"a", "b"},
                                        [this](std::string place) { return Read(std::move(place)); },
                                        &KeyOf}};
};

TEST_F(MachineListsTest, ListsAreSharedUntilTheyAreOldOrSomethingChanges) {
  EXPECT_EQ(time.Run(lists.All()).size(), 3u);
  EXPECT_EQ(time.Run(lists.All()).size(), 3u);
  EXPECT_EQ(reads["a"], 1);
  lists.NoteChange();
  time.Advance(1ms);
  time.Run(lists.All());
  EXPECT_EQ(reads["a"], 2);
  time.Advance(ServerLists::kAge + 1s);
  time.Run(lists.All());
  EXPECT_EQ(reads["a"], 3);
  EXPECT_EQ(reads["b"], 3);
}

TEST_F(MachineListsTest, APlaceThatDoesNotAnswerHoldsUpNoOther) {
  silent = {"a"};
  SteadyTime begun = time.loop().SteadyNow();
  std::vector<ServerLists::Pointer> listed = time.Run(lists.All());
  EXPECT_LE(time.loop().SteadyNow() - begun, 1min);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed.front()->number, 3);
  silent = {"a", "b"};
  time.Advance(ServerLists::kAge + 1s);
  Outcome<std::vector<ServerLists::Pointer>> none = time.Run(Attempt(lists.All()));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().verdict(), Verdict::kTimedOut);
  EXPECT_EQ(none.error().message(), "listing machines of provider p in b timed out");
}

TEST_F(MachineListsTest, OwnUseIsOfAllPlacesOrUnknown) {
  EXPECT_EQ(OwnUse(), (Resources{{"n", 4}}));
  silent = {"b"};
  time.Advance(ServerLists::kAge + 1s);
  EXPECT_EQ(OwnUse(), std::nullopt);
}

TEST_F(MachineListsTest, NodesAreFoundWhereTheirIdsSay) {
  std::vector<ServerLists::Found> found = time.Run(lists.Find({"a/m1", "a/m2", "b/m1", "c/m3"}));
  ASSERT_EQ(found.size(), 4u) << "also of a place that is not configured any more";
  EXPECT_EQ(found[0].machine->number, 1);
  EXPECT_EQ(found[1].machine, nullptr) << "it is not the provider's";
  EXPECT_EQ(found[2].machine, nullptr);
  EXPECT_EQ(found[3].key.place, "c");
  EXPECT_EQ(reads["c"], 1);
  EXPECT_THAT(Missing({"a/m1", "a/m2", "c/m3"}),
              ElementsAre(boost::json::value("a/m2"), boost::json::value("c/m3")));
}

TEST_F(MachineListsTest, OfAPlaceThatCannotBeListedNoneIsMissing) {
  silent = {"a"};
  EXPECT_THAT(Missing({"a/m9", "b/m9"}), ElementsAre(boost::json::value("b/m9")));
  EXPECT_THAT(Missing({}), IsEmpty());
}

TEST_F(MachineListsTest, AMachineIsGoneWhenALaterListDoesNotShowIt) {
  auto is_it = [](const Server& machine) { return machine.number == 1; };
  EXPECT_FALSE(time.Run(lists.AwaitGone({"a", "m1"}, is_it, 10s)));
  cloud["a"]["m1"].number = 7;
  EXPECT_TRUE(time.Run(lists.AwaitGone({"a", "m1"}, is_it, 10s))) << "another one has its name";
  cloud["a"].clear();
  EXPECT_TRUE(time.Run(lists.AwaitGone(
      {"a", "m1"}, [](const Server&) { return true; }, 10s)));
}

TEST_F(MachineListsTest, OwnMachinesAreSearchedForLeaks) {
  std::vector<Resource> resources;
  silent = {"b"};
  log::Capture log;
  time.Run(lists.AppendOwn("machine", resources));
  ASSERT_EQ(resources.size(), 1u);
  EXPECT_EQ(resources.front().type, "machine");
  EXPECT_EQ(resources.front().id, "a/m1");
  EXPECT_EQ(resources.front().metadata.at(kProviderKey), "p");
  EXPECT_EQ(log.Count("The machines of provider p could not be listed"), 1);
}

TEST_F(MachineListsTest, ACloudWithOneListHasNoPlaces) {
  cloud[""] = {{"m1", Made(1)}};
  ServerLists one(environment, tasks, log::Logger("test"),
                  {"machines", ProviderName("p"), {""}, [this](std::string place) { return Read(place); }});
  std::vector<Resource> resources;
  time.Run(one.AppendOwn("machine", resources));
  ASSERT_EQ(resources.size(), 1u);
  EXPECT_EQ(resources.front().id, "m1");
}

}  // namespace
}  // namespace nodepool::driver::cloud
