#include <gmock/gmock.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <iterator>

#include "launcher/launcher_fixture_for_test.h"
#include "store/whole_tree.h"
#include "web/actions/action_endpoints.h"
#include "web/api/api.h"
#include "web/lists/lists.h"
#include "web/requests/request_endpoints.h"
#include "web/site_for_test.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;
using config::Scope;
using ::testing::Contains;

constexpr const char* kImage = "/nodepool/images/debian/builds/0000000001";
constexpr const char* kUpload = "/nodepool/images/debian/builds/0000000001/providers/cloud/images/0000000001";

// No answer takes as many steps of the loop; some changes make the launcher work for longer.
constexpr int kMostSteps = 150;

// Answers requests while their records change, with every distance between the beginnings of the two, so that
// a change meets each await of the answer. With the address sanitizer, this finds what is kept across one.
class ConcurrentChangesTest : public launcher::LauncherTest {
 protected:
  using Change = std::function<Task<>()>;
  using Check = std::function<void(const Response&)>;

  void SetUp() override {
    LauncherTest::SetUp();
    access_.Configure(WithTokens(
        {Token("ci", {Scope::kRead, Scope::kRequest}), Token("ops", {Scope::kRead, Scope::kOperate})}));
    ImageName image("debian");
    config_->common.diskimages[image].name = image;
    provider_config().manages_images = true;
    provider_config().diskimages[image] = std::make_shared<driver::ProviderDiskImage>();
    running_ = &StartLauncher();
    launcher::Launcher& launcher = *running_->launcher;
    recent_ = std::make_shared<RecentAnswers>(time_.loop(), Pace::kEachStep);
    std::vector<Endpoint> endpoints = RequestEndpoints(time_.loop(), launcher, access_);
    std::ranges::move(ActionEndpoints(time_.loop(), launcher, access_), std::back_inserter(endpoints));
    std::ranges::move(ApiEndpoints(launcher, recent_), std::back_inserter(endpoints));
    std::ranges::move(ListEndpoints(time_.loop(), launcher, recent_), std::back_inserter(endpoints));
    router_.emplace(std::move(endpoints));
  }

  static net::HttpRequest Asking(std::string method, std::string target, std::string body = "",
                                 std::string token = "ci") {
    net::HttpRequest request;
    request.method = std::move(method);
    EXPECT_TRUE(net::ParseTarget(target, request));
    if (!body.empty()) request.headers["content-type"] = "application/json";
    request.headers["authorization"] = "Bearer " + TokenText(token);
    request.headers["accept"] = "application/json";
    request.headers["host"] = "nodepool.example.org";
    request.peer = "192.0.2.1";
    request.body = std::move(body);
    return request;
  }
  Response Send(net::HttpRequest request) { return time_.Run(router_->Answer(std::move(request))); }

  // The location of a new lease; one that waits is for a label that only another launcher has.
  std::string MakeWaiting() {
    return LocationOf(Send(Asking("POST", "/api/v1/requests", R"({"labels": ["rare"]})")));
  }
  std::string MakeHeld(const std::string& labels) {
    std::string location =
        LocationOf(Send(Asking("POST", "/api/v1/requests", R"({"labels": )" + labels + "}")));
    EXPECT_TRUE(Await([&] { return json::parse(Send(Asking("GET", location)).body).at("state") == "held"; }));
    return location;
  }
  static std::string LocationOf(const Response& response) {
    EXPECT_EQ(response.status, 201) << response.body;
    return response.headers.back().second;
  }
  static LeaseId IdIn(const std::string& location) {
    return LeaseId(location.substr(location.rfind('/') + 1));
  }

  // A renewal, or another write, by another process.
  Task<> WriteLease(LeaseId id, std::function<void(Lease&)> change) {
    auto write = [change](Lease& lease) {
      change(lease);
      return store::Change::kWrite;
    };
    co_await client_store_->leases.Update(id, write);
  }
  Change Renewing(const LeaseId& id) {
    return [this, id] {
      auto renew = [now = time_.loop().Now()](Lease& lease) { lease.renewed_time = now; };
      return WriteLease(id, renew);
    };
  }
  Task<> ANodeComesAndGoes() {
    Node record;
    record.SetState(NodeState::kHold, time_.loop().Now());
    record.provider = ProviderName("cloud");
    NodeId node = co_await client_store_->nodes.Create(record);
    co_await store::EraseNode(*client_store_, node, time_.loop().Now());
  }
  Task<> ARequestComesAndGoes() {
    NodeRequest record;
    record.SetState(RequestState::kFailed, time_.loop().Now());
    record.node_types = {LabelName("small")};
    RequestId request = co_await client_store_->requests.Create("900", record, false);
    co_await client_store_->requests.Delete(request);
  }
  Task<> WriteText(std::string path, std::string text) { co_await client_->Set(path, text, -1); }
  Change Writing(std::string path, std::string text) {
    return [this, path, text] { return WriteText(path, text); };
  }

  // `prepare` makes the records for one distance.
  void Interleave(
      const std::function<net::HttpRequest()>& ask, const Change& change, const Check& check,
      const std::function<void()>& prepare = [] {}) {
    for (bool is_change_first : {false, true}) {
      for (int steps = 0; steps < kMostSteps && !HasFailure(); ++steps) {
        prepare();
        std::optional<Response> response;
        bool has_changed = false;
        auto begin = [&](bool is_change) {
          is_change ? Begin(change(), has_changed) : Begin(ask(), response);
        };
        begin(is_change_first);
        int done = 0;
        while (done < steps && !has_changed && !response && time_.loop().context().poll_one() > 0) ++done;
        begin(!is_change_first);
        ASSERT_TRUE(time_.RunUntil([&] { return response && has_changed; }));
        SCOPED_TRACE(
            fmt::format("the {} begins first, by {} steps", is_change_first ? "change" : "answer", done));
        check(*response);
        if (done < steps) break;
        ++count_;
      }
    }
  }
  void Begin(Task<> change, bool& has_changed) {
    boost::asio::co_spawn(time_.loop().context(), std::move(change), [&](std::exception_ptr error) {
      EXPECT_FALSE(error);
      has_changed = true;
    });
  }
  void Begin(net::HttpRequest request, std::optional<Response>& response) {
    boost::asio::co_spawn(time_.loop().context(), router_->Answer(std::move(request)),
                          [&](std::exception_ptr error, Response answer) {
                            EXPECT_FALSE(error);
                            response = std::move(answer);
                          });
  }
  // An answer of 200 shows the lease.
  static Check ShowsLease(const std::string& location, std::set<int> statuses = {200}) {
    return [id = IdIn(location), statuses](const Response& response) {
      EXPECT_THAT(statuses, Contains(response.status)) << response.body;
      if (response.status != 200) return;
      json::value lease = json::parse(response.body);
      EXPECT_EQ(std::string(lease.at("id").as_string()), id.value);
      EXPECT_EQ(lease.at("client"), "ci");
    };
  }
  static Check HasStatus(std::set<int> statuses) {
    return [statuses](const Response& response) {
      EXPECT_THAT(statuses, Contains(response.status)) << response.whole_body();
    };
  }

  Running* running_ = nullptr;
  Access access_{time_.loop(), &MatchPlainly};
  std::shared_ptr<RecentAnswers> recent_;
  std::optional<Router> router_;
  int count_ = 0;  // of distances
};

TEST_F(ConcurrentChangesTest, LeasesThatAreRenewed) {
  std::string location = MakeHeld(R"(["small", "large"])");
  Change renew = Renewing(IdIn(location));
  auto ask = [&](const char* method, std::string target, std::string body = "") {
    return [=] { return Asking(method, target, body); };
  };
  Interleave(ask("GET", location), renew, ShowsLease(location));
  Interleave(ask("GET", location + "?wait=5"), renew, ShowsLease(location));
  Interleave(ask("POST", location + "/renew"), renew, ShowsLease(location));
  Interleave(ask("POST", location + "/hold", R"({"node": "0000009999"})"), renew, HasStatus({409}));
  Interleave(ask("GET", "/api/v1/leases"), renew, HasStatus({200}));
  EXPECT_GT(count_, 50);
}

TEST_F(ConcurrentChangesTest, ALeaseThatIsMadeAgain) {
  auto post = [] {
    net::HttpRequest request = Asking("POST", "/api/v1/requests", R"({"labels": ["small"]})");
    request.headers["idempotency-key"] = "build-7";
    return request;
  };
  std::string location = LocationOf(Send(post()));
  Interleave(post, Renewing(IdIn(location)), ShowsLease(location));
}

TEST_F(ConcurrentChangesTest, LeasesThatEnd) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  time_.Advance(std::chrono::seconds(1));
  std::string location;
  auto prepare = [&] { location = MakeWaiting(); };
  auto end = [&] {
    return WriteLease(IdIn(location), [](Lease& lease) { lease.state = LeaseState::kEnding; });
  };
  auto check = [&](const Response& response) { ShowsLease(location, {200, 204, 404, 409})(response); };
  for (auto [method, action] :
       {std::pair("GET", ""), {"GET", "?wait=60"}, {"POST", "/renew"}, {"DELETE", ""}}) {
    SCOPED_TRACE(fmt::format("{} {}", method, action));
    auto ask = [&, method = method, action = action] { return Asking(method, location + action); };
    Interleave(ask, end, check, prepare);
  }
  EXPECT_GT(count_, 50);
}

TEST_F(ConcurrentChangesTest, NodesThatAreHeld) {
  std::string location;
  NodeId node;
  auto prepare = [&] {
    if (!node.empty()) time_.Run(store::EraseNode(*client_store_, node, time_.loop().Now()));
    location = MakeHeld(R"(["small"])");
    json::value lease = json::parse(Send(Asking("GET", location)).body);
    node = NodeId(std::string(lease.at("nodes").at(0).at("id").as_string()));
  };
  auto hold = [&] { return Asking("POST", location + "/hold", R"({"node": ")" + node.value + R"("})"); };
  auto renew = [&] { return Renewing(IdIn(location))(); };
  Interleave(
      hold, renew, [&](const Response& response) { ShowsLease(location)(response); }, prepare);
  EXPECT_GT(count_, 20);
}

// Each list, while what it shows is written, and while it comes and goes.
TEST_F(ConcurrentChangesTest, Lists) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  std::string location = MakeHeld(R"(["small", "large"])");
  MakeWaiting();
  NodeId node = Nodes().at(0);
  std::string request = Children("/nodepool/requests").at(0);
  ImageBuild build;
  build.state = ImageState::kReady;
  build.state_time = time_.loop().Now();
  ImageUpload upload;
  upload.state = ImageState::kReady;
  upload.state_time = time_.loop().Now();
  Put(kImage, ToJson(build));
  Put(kUpload, ToJson(upload));
  time_.Advance(std::chrono::seconds(1));
  Change write_node = Writing("/nodepool/nodes/" + node.value, ToJson(*Read(node)));
  Change write_request = Writing("/nodepool/requests/" + request, ToJson(*Read(RequestId(request))));
  Change write_build = Writing(kImage, ToJson(build));
  Change write_upload = Writing(kUpload, ToJson(upload));
  std::map<std::string, Change> lists = {
      {"/api/v1/nodes", write_node},      {"/api/v1/requests", write_request},
      {"/api/v1/images", write_build},    {"/api/v1/builds", write_build},
      {"/api/v1/uploads", write_upload},  {"/api/v1/providers", write_node},
      {"/api/v1/components", write_node}, {"/api/v1/jobs", write_node},
      {"/node-list", write_node},         {"/request-list", write_request},
      {"/image-list", write_upload},      {"/dib-image-list", write_build},
      {"/label-list", write_node}};
  auto prepare = [this] { recent_->Clear(); };
  for (const auto& [list, write] : lists) {
    SCOPED_TRACE(list);
    auto ask = [&list = list] { return Asking("GET", list, "", "ops"); };
    Interleave(ask, write, HasStatus({200}), prepare);
    bool is_of_nodes = list.ends_with("/nodes"), is_of_requests = list.ends_with("/requests");
    if (is_of_nodes)
      Interleave(
          ask, [this] { return ANodeComesAndGoes(); }, HasStatus({200}), prepare);
    if (is_of_requests)
      Interleave(
          ask, [this] { return ARequestComesAndGoes(); }, HasStatus({200}), prepare);
  }
  EXPECT_GT(count_, 100);
}

// The actions of an operator, while their records are written.
TEST_F(ConcurrentChangesTest, Actions) {
  NodeId node = AddNode(NodeState::kHold);
  ImageBuild build;
  build.state = ImageState::kReady;
  build.state_time = time_.loop().Now();
  Put(kImage, ToJson(build));
  time_.Advance(std::chrono::seconds(1));
  Change write_node = Writing("/nodepool/nodes/" + node.value, ToJson(*Read(node)));
  Change write_build = Writing(kImage, ToJson(build));
  std::string held = "/api/v1/nodes/" + node.value + "/hold";
  Interleave([&] { return Asking("POST", held, R"({"reason": "bug 7"})", "ops"); }, write_node,
             HasStatus({200, 409}));
  for (const char* action : {"pause", "unpause", "build"}) {
    auto ask = [&] { return Asking("POST", fmt::format("/api/v1/images/debian/{}", action), "", "ops"); };
    Interleave(ask, write_build, HasStatus({200, 202, 409}));
  }
  for (const char* action : {"pause", "unpause"}) {
    auto ask = [&] { return Asking("POST", fmt::format("/api/v1/providers/cloud/{}", action), "", "ops"); };
    Interleave(ask, write_node, HasStatus({200, 404, 409}));
  }
  EXPECT_GT(count_, 50);
}

}  // namespace
}  // namespace nodepool::web
