#include <gmock/gmock.h>

#include "async/task_group.h"
#include "base/text.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {

// The exact output of the listing commands.

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ListTest : public CommandTest {};

// operations.16.2.
TEST_F(ListTest, AnEmptyTreeGivesHeadersAndIsNotWrittenTo) {
  std::uint64_t before = our_writes();
  EXPECT_EQ(Shown({"list"}),
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n"
            "| ID | Provider | Label | Server ID | Public IPv4 | IPv6 | State | Age | Locked |\n"
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n"
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n");
  EXPECT_EQ(our_writes(), before);
  EXPECT_FALSE(Exists("/nodepool"));
}

TEST_F(ListTest, LockedNodesAreShownAsSuchWithoutAWrite) {
  NodeId first = AddNode(ReadyNode());
  NodeId second = AddNode(ReadyNode());
  auto lock = time_.Run(others_.nodes.TryLock(second));
  std::uint64_t before = our_writes();
  ShownAsJson({"list"});
  EXPECT_THAT(out_.str(),
              HasSubstr("\"id\":\"" + first.value + "\",\"provider\":\"cloud\",\"label\":[\"small\"]"));
  EXPECT_THAT(out_.str(), HasSubstr("\"locked\":\"unlocked\"},{\"id\":\"" + second.value));
  EXPECT_THAT(out_.str(), HasSubstr("\"locked\":\"locked\"}]"));
  EXPECT_EQ(our_writes(), before);
  EXPECT_FALSE(Exists("/nodepool/nodes/" + first.value + "/lock"));
  time_.Run(lock->Unlock());
}

// operations.5.10: one bad record does not hide the others.
TEST_F(ListTest, UnreadableRecordsAreReportedAndLeftOut) {
  NodeId good = AddNode(ReadyNode());
  zk_.tree().Create({"/nodepool/nodes/0000000077", "{broken"}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/nodes/0000000078", ""}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/requests", ""}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/requests/200-0000000005", "[]"}, 0, time_.clock().Now());
  ShownAsJson({"list"});
  EXPECT_THAT(out_.str(), HasSubstr(good.value));
  EXPECT_THAT(out_.str(), Not(HasSubstr("000000007")));
  EXPECT_EQ(log_.Count("0000000077"), 1);
  ShownAsJson({"request-list"});
  EXPECT_EQ(log_.Count("200-0000000005"), 1);
}

TEST_F(ListTest, RequestsAreSortedById) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1'700'000'000));
  request.node_types = {LabelName("a"), LabelName("b")};
  request.declined_by = {LauncherId("l1")};
  request.requestor = "zuul";
  request.event_id = "e1";
  time_.Run(others_.requests.Create("300", request, true));
  request.relative_priority = 7;
  time_.Run(others_.requests.Create("100", request, true));
  EXPECT_EQ(
      Shown({"request-list"}),
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+\n"
      "| Request ID     | Priority | State     | Requestor | Node Types | Nodes | Declined By | Event ID |\n"
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+\n"
      "| 100-0000000001 | 7        | requested | zuul      | a,b        |       | l1          | e1       |\n"
      "| 300-0000000000 | 0        | requested | zuul      | a,b        |       | l1          | e1       |\n"
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+"
      "\n");
}

// D-30
TEST_F(ListTest, ProvidersAsTheirLaunchersSayTheyAre) {
  config_->common.providers = {{ProviderName("cloud"), "fake", {}},
                               {ProviderName("gone"), "static", {}},
                               {ProviderName("old"), "openstack", {}}};
  Node node = ReadyNode();
  node.resources = {{"instances", 1}, {"cores", 2}};
  AddNode(node);
  Put("/nodepool/components/launcher/np010000000000",
      R"({"hostname": "np01", "state": "running", "providers": {"cloud": {"state": "up", "since": 1699999940, )"
      R"("limit": {"cores": 8}}}})");
  Put("/nodepool/components/launcher/np020000000001",
      R"({"hostname": "np02", "state": "running", "providers": {"cloud": {"state": "failing", "since": 1699999970, )"
      R"("fault": "401 from keystone"}, "new": {"state": "draining", "since": 1699999999}}})");
  Put("/nodepool/components/pool/np030000000002",
      R"({"hostname": "np03", "state": "running", "id": "l3", "provider_name": "old", "supported_labels": []})");
  std::uint64_t before = our_writes();
  EXPECT_EQ(
      ShownAsJson({"provider-list"}),
      R"([{"name":"cloud","driver":"fake","launcher":"np01","state":"up","since":1.69999994E9,"nodes":1,)"
      R"("used":{"cores":2,"instances":1},"free":{"cores":6},"why":""},)"
      R"({"name":"cloud","driver":"fake","launcher":"np02","state":"failing","since":1.69999997E9,"nodes":1,)"
      R"("used":{"cores":2,"instances":1},"free":{},"why":"401 from keystone"},)"
      R"({"name":"gone","driver":"static","launcher":"","state":"unserved","since":null,"nodes":0,)"
      R"("used":{},"free":{},"why":"no launcher serves it"},)"
      R"({"name":"new","driver":"","launcher":"np02","state":"draining","since":1.699999999E9,"nodes":0,)"
      R"("used":{},"free":{},"why":"it is not configured any more"},)"
      R"({"name":"old","driver":"openstack","launcher":"np03","state":"up","since":null,"nodes":0,)"
      R"("used":{},"free":{},"why":""}])"
      "\n");
  EXPECT_EQ(our_writes(), before);
}

TEST_F(ListTest, ProvidersAreFollowedAndChosen) {
  config_->common.providers = {{ProviderName("cloud"), "fake", {}}, {ProviderName("other"), "fake", {}}};
  std::string shown = Shown({"provider-list", "--state", "unserved", "--provider", "other"});
  EXPECT_THAT(shown, HasSubstr("| other    | fake   |          | unserved |"));
  EXPECT_THAT(shown, Not(HasSubstr("cloud")));
  EXPECT_FALSE(Exists("/nodepool"));
}

// operations.5.4.
TEST_F(ListTest, InfoShowsOneProvider) {
  NodeId node = AddNode(ReadyNode());
  Node other = ReadyNode();
  other.provider = ProviderName("elsewhere");
  AddNode(other);
  Put("/nodepool/images/deb-12/builds/b2/providers/cloud", "");
  Put("/nodepool/images/deb-12/builds/b1/providers/cloud/images/0000000002", R"({"state": "ready"})");
  Put("/nodepool/images/deb-12/builds/b1/providers/cloud/images/0000000001", R"({"state": "deleting"})");
  Put("/nodepool/images/deb-12/builds/b1/providers/elsewhere/images/0000000001", R"({"state": "ready"})");
  EXPECT_EQ(Shown({"info", "cloud"}),
            "ZooKeeper data for provider cloud\n"
            "\n"
            "Image data:\n"
            "+------------+----------+-----------------------+\n"
            "| Image Name | Build ID | Upload IDs            |\n"
            "+------------+----------+-----------------------+\n"
            "| deb-12     | b1       | 0000000001,0000000002 |\n"
            "| deb-12     | b2       |                       |\n"
            "+------------+----------+-----------------------+\n"
            "\n"
            "Nodes:\n"
            "+------------+-----------+\n"
            "| ID         | Server ID |\n"
            "+------------+-----------+\n"
            "| 0000000000 | i-1       |\n"
            "+------------+-----------+\n");
  EXPECT_EQ(node.value, "0000000000");
  EXPECT_EQ(ShownAsJson({"info", "cloud"}),
            R"({"provider":"cloud","images":[{"image":"deb-12","build_id":"b1","upload_ids":["0000000001",)"
            R"("0000000002"]},{"image":"deb-12","build_id":"b2","upload_ids":[]}],)"
            R"("nodes":[{"id":"0000000000","server_id":"i-1"}],"paused":[],"breakers":[]})"
            "\n");
}

// D-66
TEST_F(ListTest, NothingIsShownOfAProviderThatNobodyKnows) {
  config_->common.providers.push_back({.name = ProviderName("cloud")});
  EXPECT_THAT(Shown({"info", "cloud"}), HasSubstr("ZooKeeper data for provider cloud\n"));
  Outcome<int> shown = time_.Run(Attempt(Command({"info", "clod"})));
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().message(),
            "clod is not configured, and there are no records of it; did you mean cloud?");
}

// D-66
TEST_F(ListTest, AFilterThatNobodyKnowsIsAWarning) {
  AddNode(ReadyNode());
  config_->common.labels[LabelName("large")];
  for (const char* known : {"small", "large"}) Shown({"list", "--label", known});
  EXPECT_EQ(log_.Count("not configured"), 0);
  Shown({"list", "--label", "lagre"});
  EXPECT_EQ(log_.Count("lagre is not configured, and there are no records of it; did you mean large?"), 1);
}

// operations.16.27
TEST_F(ListTest, RecordsThatAFilterLeavesOutAreNotEvenParsed) {
  NodeId good = AddNode(ReadyNode());
  Put("/nodepool/nodes/0000000077", R"({"provider": "elsewhere", "state": 1})");
  Put("/nodepool/nodes/0000000078", R"({"provider": "cloud", "state": 1})");
  EXPECT_THAT(Shown({"list", "--provider", "cloud"}), HasSubstr(good.value));
  EXPECT_EQ(log_.Count("0000000077"), 0);
  EXPECT_EQ(log_.Count("0000000078"), 1);
  Shown({"list"});
  EXPECT_EQ(log_.Count("0000000077"), 1);
}

// operations.16.27, D-66
TEST_F(ListTest, AWordThatOnlyRowsOfOthersHaveIsKnown) {
  AddNode(ReadyNode());
  Node other = ReadyNode();
  other.provider = ProviderName("elsewhere");
  other.type = {LabelName("rare")};
  AddNode(other);
  EXPECT_THAT(Shown({"list", "--provider", "cloud", "--label", "rare"}), Not(HasSubstr("000000")));
  EXPECT_EQ(log_.Count("not configured"), 0);
}

// operations.5.4
TEST_F(ListTest, BuildsAndUploads) {
  Put("/nodepool/images/deb-12/builds/b1",
      R"({"state": "ready", "state_time": 1699999939, "builder": "nb01",)"
      R"( "formats": "raw,qcow2"})");
  Put("/nodepool/images/deb-12/builds/b1/providers/cloud/images/0000000001",
      R"({"state": "uploading", "state_time": 1699999990.5, "external_name": "n"})");
  Put("/nodepool/images/rocky/builds/b9", R"({"state": "building", "state_time": 1699999999})");
  Put("/nodepool/images/rocky/pause", "");
  EXPECT_EQ(Shown({"dib-image-list"}),
            "+-----------+--------+---------+-----------+--------+-------------+\n"
            "| ID        | Image  | Builder | Formats   | State  | Age         |\n"
            "+-----------+--------+---------+-----------+--------+-------------+\n"
            "| deb-12-b1 | deb-12 | nb01    | qcow2,raw | ready  | 00:00:01:01 |\n"
            "| rocky-b9  | rocky  |         |           | paused | 00:00:00:01 |\n"
            "+-----------+--------+---------+-----------+--------+-------------+\n");
  EXPECT_EQ(
      ShownAsJson({"dib-image-list"}),
      R"([{"id":"deb-12-b1","image":"deb-12","builder":"nb01","formats":["qcow2","raw"],"state":"ready",)"
      R"("age":61,"state_since":1699999939},{"id":"rocky-b9","image":"rocky","builder":null,"formats":[],)"
      R"("state":"paused","age":1,"state_since":1699999999}])"
      "\n");
  EXPECT_EQ(Shown({"dib-image-list", "--state", "paused"}),
            "+----------+-------+---------+---------+--------+-------------+\n"
            "| ID       | Image | Builder | Formats | State  | Age         |\n"
            "+----------+-------+---------+---------+--------+-------------+\n"
            "| rocky-b9 | rocky |         |         | paused | 00:00:00:01 |\n"
            "+----------+-------+---------+---------+--------+-------------+\n");
  EXPECT_EQ(Shown({"image-list"}),
            "+----------+------------+----------+--------+---------------------+-------------------+---------"
            "--+-------------"
            "+\n"
            "| Build ID | Upload ID  | Provider | Image  | Provider Image Name | Provider Image ID | State   "
            "  | Age         "
            "|\n"
            "+----------+------------+----------+--------+---------------------+-------------------+---------"
            "--+-------------"
            "+\n"
            "| b1       | 0000000001 | cloud    | deb-12 | n                   |                   | "
            "uploading | 00:00:00:10 "
            "|\n"
            "+----------+------------+----------+--------+---------------------+-------------------+---------"
            "--+-------------"
            "+\n");
  EXPECT_THAT(
      Shown({"image-status"}),
      AllOf(HasSubstr("| Image  | Paused | Build Request | Build Request Age | Last Build | Build Age   |"),
            HasSubstr("| deb-12 | False  |               |                   | ready      | 00:00:01:01 |"),
            HasSubstr("| rocky  | True   |               |                   | building   | 00:00:00:01 |")));
  EXPECT_EQ(
      ShownAsJson({"image-status"}),
      R"([{"image":"deb-12","paused":false,"build_request":null,"build_request_age":null,"build_request_since":null,)"
      R"("last_build":"ready","last_build_age":61,"last_build_since":1699999939,"last_build_error":null,"upload_error":null,"no_upload_in":[],"labels_waiting":[]},)"
      R"({"image":"rocky","paused":true,"build_request":null,"build_request_age":null,"build_request_since":null,)"
      R"("last_build":"building","last_build_age":1,"last_build_since":1699999999,"last_build_error":null,"upload_error":null,"no_upload_in":[],"labels_waiting":[]}])"
      "\n");
}

TEST_F(ListTest, RowsAreChosenByStateLabelAndProvider) {
  NodeId first = AddNode(ReadyNode());
  Node held = ReadyNode();
  held.SetState(NodeState::kHold, held.state_time);
  held.type.push_back(LabelName("large"));
  NodeId second = AddNode(held);
  held.provider = ProviderName("elsewhere");
  NodeId third = AddNode(held);
  auto ids = [&](std::vector<std::string> filter) {
    filter.insert(filter.begin(), "list");
    std::string json = ShownAsJson(std::move(filter));
    std::vector<std::string> found;
    for (const NodeId& id : {first, second, third}) {
      if (json.find('"' + id.value + '"') != std::string::npos) found.push_back(id.value);
    }
    return Join(found, ",");
  };
  EXPECT_EQ(ids({"--state", "hold"}), second.value + "," + third.value);
  EXPECT_EQ(ids({"--state", "hold", "--state", "ready", "--provider", "cloud"}),
            first.value + "," + second.value);
  EXPECT_EQ(ids({"--label", "large", "--provider", "elsewhere"}), third.value);
  EXPECT_EQ(ids({"--label", "nonesuch"}), "");
}

TEST_F(ListTest, ColorsOnATerminalOrWhenToldTo) {
  AddNode(ReadyNode());
  EXPECT_THAT(Shown({"list"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Shown({"list", "--color", "always"}), HasSubstr("| \x1b[32mready\x1b[0m | "));
  context_.wants_color = true;
  EXPECT_THAT(Shown({"list"}), HasSubstr("\x1b[32mready"));
  EXPECT_THAT(Shown({"list", "--color", "never"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(ShownAsJson({"list"}), Not(HasSubstr("\x1b")));
}

TEST_F(ListTest, ATableFitsTheTerminal) {
  Node node = ReadyNode();
  node.external_id = "4d1f0c2a-7b1e-4a0c-9d3f-0123456789ab";
  AddNode(node);
  std::string piped = Shown({"list"});
  context_.terminal_width = [] { return 80; };
  EXPECT_EQ(Shown({"list"}),
            "+------------+----------+-------+-----------+-------+-------------+----------+\n"
            "| ID         | Provider | Label | Server ID | State | Age         | Locked   |\n"
            "+------------+----------+-------+-----------+-------+-------------+----------+\n"
            "| 0000000000 | cloud    | small | 4d1f0c2a… | ready | 00:00:00:00 | unlocked |\n"
            "+------------+----------+-------+-----------+-------+-------------+----------+\n");
  EXPECT_EQ(Shown({"list", "--wide"}), piped);
  EXPECT_EQ(Shown({"list", "--output", "columns=state,id"}),
            "+-------+------------+\n"
            "| State | ID         |\n"
            "+-------+------------+\n"
            "| ready | 0000000000 |\n"
            "+-------+------------+\n");
  EXPECT_EQ(ShownAsJson({"list", "--output", "columns=state"}), "[{\"state\":\"ready\"}]\n");
  context_.terminal_width = [] { return 40; };
  EXPECT_EQ(Shown({"list"}),
            "+------------+----------+-------+\n"
            "| ID         | Provider | Label |\n"
            "+------------+----------+-------+\n"
            "| 0000000000 | cloud    | small |\n"
            "+------------+----------+-------+\n"
            "Left out: Server ID, State, Age, Locked\n");
}

TEST_F(ListTest, WhatDoesNotFitInDetailIsShownInBlocks) {
  AddNode(ReadyNode());
  AddNode(ReadyNode());
  std::vector<std::string> detailed = {"list", "--detail"};
  context_.terminal_width = [] { return 200; };
  EXPECT_THAT(Shown(detailed), HasSubstr("| 0000000001 | cloud "));
  context_.terminal_width = [] { return 80; };
  std::string shown = Shown(detailed);
  EXPECT_THAT(shown, StartsWith("ID:        0000000000\nProvider:  cloud\nLabel:     small\n"));
  EXPECT_THAT(shown,
              HasSubstr("\nPool:      main\nUsername:  zuul\nPort:      22\n\nID:        0000000001\n"));
  detailed.emplace_back("--wide");
  EXPECT_THAT(Shown(detailed), HasSubstr("| 0000000001 | cloud "));
}

// A command that follows changes in the background.
class WatchTest : public CommandTest {
 protected:
  void Watch(std::vector<std::string> words) {
    status_.reset();
    out_.str("");
    tasks_.emplace(time_.loop(), log::Logger("test"));
    tasks_->Spawn("watch", Keep(Command(std::move(words))));
    time_.Advance(std::chrono::milliseconds(100));
  }
  Task<> Keep(Task<int> command) { status_ = co_await std::move(command); }
  // How many tables are printed between just before the change and this long after it.
  int Tables(
      Duration duration, std::function<void()> change = [] {}) {
    out_.str("");
    change();
    time_.Advance(duration);
    std::string text = out_.str();
    return static_cast<int>(std::ranges::count(text, '\n'));
  }
  void Interrupt() { time_.Run(tasks_->Stop()); }
  void TearDown() override { Interrupt(); }

  std::optional<int> status_;
  std::optional<TaskGroup> tasks_;
};

TEST_F(WatchTest, AChangeIsShownAtOnceAndManyOnceInASecond) {
  Watch({"list", "--json", "--watch"});
  EXPECT_EQ(out_.str(), "[]\n");
  EXPECT_EQ(Tables(std::chrono::hours(1)), 0) << "nothing changes";
  NodeId id;
  EXPECT_EQ(Tables(std::chrono::milliseconds(10), [&] { id = AddNode(ReadyNode()); }), 1);
  EXPECT_THAT(out_.str(), HasSubstr(id.value));
  auto add_many = [&] {
    for (int i = 0; i < 20; ++i) AddNode(ReadyNode());
  };
  EXPECT_EQ(Tables(std::chrono::milliseconds(900), add_many), 0);
  EXPECT_EQ(Tables(std::chrono::milliseconds(200)), 1);
  EXPECT_EQ(Tables(std::chrono::hours(1)), 0);
}

TEST_F(WatchTest, ChangesOfOtherRowsAreNotShown) {
  Watch({"list", "--json", "--watch", "--provider", "elsewhere"});
  EXPECT_EQ(Tables(std::chrono::seconds(10), [&] { AddNode(ReadyNode()); }), 0);
  Node node = ReadyNode();
  node.provider = ProviderName("elsewhere");
  EXPECT_EQ(Tables(std::chrono::seconds(10), [&] { AddNode(node); }), 1);
}

TEST_F(WatchTest, LocksAreFollowedAndAnInterruptionIsTheGoodEnd) {
  NodeId id = AddNode(ReadyNode());
  Watch({"list", "--json", "--watch"});
  std::optional<store::LockedNode> lock;
  EXPECT_EQ(Tables(std::chrono::seconds(10), [&] { lock = time_.Run(others_.nodes.TryLock(id)); }), 1);
  EXPECT_THAT(out_.str(), HasSubstr(R"("locked":"locked")"));
  EXPECT_EQ(Tables(std::chrono::seconds(10), [&] { time_.Run(lock->Unlock()); }), 1);
  EXPECT_FALSE(status_);
  Interrupt();
  EXPECT_EQ(status_, 0);
}

TEST_F(WatchTest, RequestsAndImagesAreFollowed) {
  Watch({"request-list", "--json", "--watch"});
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1'700'000'000));
  EXPECT_EQ(
      Tables(std::chrono::seconds(10), [&] { time_.Run(others_.requests.Create("200", request, true)); }), 1);
  Interrupt();
  Watch({"image-status", "--json", "--watch"});
  EXPECT_EQ(Tables(std::chrono::seconds(10), [&] { Put("/nodepool/images/deb-12/pause", ""); }), 1);
  EXPECT_THAT(out_.str(), HasSubstr(R"({"image":"deb-12","paused":true)"));
  Interrupt();
  Watch({"provider-list", "--json", "--watch"});
  auto add_launcher = [&] {
    Put("/nodepool/components/launcher/np0",
        R"({"hostname": "np", "providers": {"cloud": {"state": "up"}}})");
  };
  EXPECT_EQ(Tables(std::chrono::seconds(10), add_launcher), 1);
  EXPECT_THAT(out_.str(), HasSubstr(R"({"name":"cloud","driver":"","launcher":"np","state":"up")"));
}

TEST_F(WatchTest, ATerminalIsCleared) {
  context_.is_terminal = true;
  context_.terminal_width = [] { return 60; };
  Watch({"list", "--watch"});
  EXPECT_THAT(out_.str(), ::testing::StartsWith("\x1b[H\x1b[2J+--"));
  EXPECT_THAT(out_.str(), HasSubstr("Left out: "));
}

TEST_F(WatchTest, ALostSessionIsToldAndGottenOver) {
  Watch({"list", "--json", "--watch"});
  auto lose = [&] {
    zk_.Disconnect(*our_client_);
    zk_.ExpireSession(*our_client_);
    AddNode(ReadyNode());
    zk_.Reconnect(*our_client_);
  };
  EXPECT_EQ(Tables(std::chrono::minutes(5), lose), 1);
  EXPECT_EQ(log_.Count("ZooKeeper is away"), 1);
}

// operations.16.27
TEST_F(WatchTest, AListWhoseSessionEndsWhileItReadsBeginsAgain) {
  AddNode(ReadyNode());
  zk_.Disconnect(*our_client_);
  Watch({"list", "--json"});
  EXPECT_EQ(out_.str(), "") << "its reads wait for the connection";
  zk_.ExpireSession(*our_client_);
  zk_.Reconnect(*our_client_);
  time_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(status_, 0);
  EXPECT_THAT(out_.str(), HasSubstr(R"("id":"0000000000")"));
}

TEST_F(WatchTest, ItEndsWhenNobodyReads) {
  Watch({"list", "--json", "--watch"});
  time_.Advance(std::chrono::seconds(5));
  out_.setstate(std::ios::badbit);
  Put("/nodepool/nodes/0000000099", R"({"state": "ready"})");
  time_.Advance(std::chrono::milliseconds(100));
  EXPECT_EQ(status_, 0);
}

}  // namespace

}  // namespace nodepool::cli
