#include "builder/builder_fixture_for_test.h"
#include "model/image.h"
#include "store/record_kinds.h"

namespace nodepool::builder {
namespace {

using namespace std::chrono_literals;
using store::Change;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const LabelName kLabel = ValidationLabel(LabelName("small"));

// A builder whose uploads are validated; the test answers its requests as launchers do.
class ValidationTest : public BuilderTest {
 protected:
  void Configure(const std::string& validate = "{command: /check --fast, timeout: 3600}") {
    settings_ = "labels: [{name: small}]\n";
    diskimages_ = "[{name: debian, validate: " + validate + "}]";
    providers_ =
        "- {name: cloud, driver: fake, cloud: simulated, diskimages: [{name: debian}], pools: [{name: main, "
        "labels: [{name: small, diskimage: debian, min-ram: 8192}]}]}\n";
    Load();
  }
  std::vector<std::pair<RequestId, NodeRequest>> Requests() {
    std::vector<std::pair<RequestId, NodeRequest>> found;
    for (const RequestId& id : time_.Run(store_->requests.List())) {
      if (auto request = time_.Run(store_->requests.Read(id))) found.emplace_back(id, request->record);
    }
    return found;
  }
  bool AwaitRequest(Duration limit = 2h) {
    return Await([&] { return Requests().size() == 1; }, limit);
  }
  NodeId MakeNode(const RequestId& request, const std::string& image) {
    Node node;
    node.SetState(NodeState::kReady, time_.loop().Now());
    node.provider = ProviderName("cloud");
    node.pool = PoolName("main");
    node.type = {kLabel};
    node.allocated_to = request;
    node.image_id = image;
    node.interface_ip = "192.0.2.7";
    node.host_keys = {"ssh-ed25519 AAAA"};
    node.username = "zuul";
    return time_.Run(store_->nodes.Create(std::move(node)));
  }
  std::string PathOfUpload() { return store::Images::UploadPath(Uploads(ImageState::kUploading).back().id); }
  // Answers the one request.
  void Answer(RequestState state, std::vector<NodeId> nodes = {}) {
    auto request = time_.Run(store_->requests.TryLock(Requests().at(0).first));
    ASSERT_TRUE(request);
    WallTime now = time_.loop().Now();
    time_.Run(request->UpdateAndUnlock([&](NodeRequest& record) {
      record.SetState(state, now);
      record.nodes = nodes;
      return Change::kWrite;
    }));
  }
  NodeId Serve() {
    NodeId node = MakeNode(Requests().at(0).first, PathOfUpload());
    Answer(RequestState::kFulfilled, {node});
    return node;
  }
  Node Read(const NodeId& id) { return time_.Run(store_->nodes.Read(id))->record; }
  std::string ErrorOfUpload() {
    EXPECT_TRUE(Await([&] { return !Uploads(ImageState::kFailed).empty(); }));
    return Uploads(ImageState::kFailed).at(0).record.error.value_or("");
  }
  static bool IsCheck(const Host& host) { return host.runner.ran.back().front() == "/check"; }
};

// VAL-1, VAL-2, VAL-3
TEST_F(ValidationTest, AnUploadIsReadyWhenAMachineOfItWasChecked) {
  Configure();
  Host& host = Start();
  ASSERT_TRUE(AwaitRequest());
  NodeRequest request = Requests().at(0).second;
  EXPECT_EQ(request.node_types, std::vector<LabelName>{kLabel});
  EXPECT_EQ(request.provider, ProviderName("cloud"));
  EXPECT_FALSE(request.reuse);
  ImageUpload waiting = Uploads().at(0).record;
  EXPECT_EQ(waiting.state, ImageState::kUploading);
  EXPECT_EQ(waiting.progress, "validating: waiting for a machine");
  EXPECT_TRUE(waiting.external_id) << "launchers boot it";
  time_.Advance(20min);
  EXPECT_EQ(Uploads().at(0).record.state, ImageState::kUploading);
  NodeId node = Serve();
  EXPECT_TRUE(Await([&] { return IsCheck(host); }));
  EXPECT_EQ(Read(node).state, NodeState::kInUse);
  EXPECT_THAT(Requests(), IsEmpty()) << "as consumers do";
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(host.runner.ran.back(), (std::vector<std::string>{"/check", "--fast"}));
  const process::Environment& environment = host.runner.environments.back();
  EXPECT_EQ(environment.at("NODEPOOL_HOST"), "192.0.2.7");
  EXPECT_EQ(environment.at("NODEPOOL_PORT"), "22");
  EXPECT_EQ(environment.at("NODEPOOL_USER"), "zuul");
  EXPECT_EQ(environment.at("NODEPOOL_HOST_KEYS"), "ssh-ed25519 AAAA");
  EXPECT_EQ(environment.at("NODEPOOL_IMAGE"), "debian");
  EXPECT_EQ(environment.at("NODEPOOL_EXTERNAL_ID"), *Uploads().at(0).record.external_id);
  EXPECT_EQ(Read(node).state, NodeState::kUsed);
  EXPECT_THAT(time_.Run(store_->nodes.Contenders(node)), IsEmpty()) << "launchers delete it";
}

// VAL-2
TEST_F(ValidationTest, WithoutACommandAMachineThatBootsIsEnough) {
  Configure("true");
  Host& host = Start();
  ASSERT_TRUE(AwaitRequest());
  Serve();
  EXPECT_TRUE(AwaitUploads(1, 10min));
  EXPECT_EQ(host.runner.ran.size(), 1u) << "the build alone";
}

// VAL-4
TEST_F(ValidationTest, WhatTheCheckRefusesIsNotUsed) {
  Configure();
  Host& host = Start();
  host.runner.next_code = [&] { return IsCheck(host) ? 3 : 0; };
  host.runner.printed = "trying\nno route to host\n\n";
  ASSERT_TRUE(AwaitRequest());
  NodeId node = Serve();
  EXPECT_EQ(ErrorOfUpload(), "the check of its machine ended with 3: no route to host");
  EXPECT_THAT(cloud().images(), IsEmpty());
  EXPECT_EQ(Read(node).state, NodeState::kUsed);
  EXPECT_TRUE(AwaitRequest()) << "the next try, after a pause";
}

// VAL-4
TEST_F(ValidationTest, WhatDoesNotBootIsNotUsed) {
  Configure();
  Start();
  ASSERT_TRUE(AwaitRequest());
  Answer(RequestState::kFailed);
  EXPECT_THAT(ErrorOfUpload(), HasSubstr("no machine of it could be booted"));
  EXPECT_THAT(cloud().images(), IsEmpty());
}

// VAL-5
TEST_F(ValidationTest, ItDoesNotWaitForEver) {
  Configure("{timeout: 600}");
  Start();
  ASSERT_TRUE(AwaitRequest());
  EXPECT_EQ(ErrorOfUpload(), "booting and checking a machine of the image timed out");
  EXPECT_THAT(Requests(), IsEmpty());
}

// VAL-6: a launcher that does not know validation boots what it always boots.
TEST_F(ValidationTest, AMachineOfAnotherUploadProvesNothing) {
  Configure();
  Start();
  ASSERT_TRUE(AwaitRequest());
  NodeId node = MakeNode(Requests().at(0).first, "/nodepool/images/debian/builds/old");
  Answer(RequestState::kFulfilled, {node});
  EXPECT_THAT(ErrorOfUpload(), HasSubstr("was booted from /nodepool/images/debian/builds/old instead"));
  EXPECT_THAT(time_.Run(store_->nodes.Contenders(node)), IsEmpty());
}

// VAL-7
TEST_F(ValidationTest, ABuilderThatDiesLeavesNothing) {
  Configure();
  Host& dead = Start("nb1");
  dead.runner.build_time = 600s;
  ASSERT_TRUE(AwaitRequest());
  cloud().FailNextImageDeletes(1);  // a dead builder removes nothing
  Kill(dead);
  EXPECT_THAT(Requests(), IsEmpty());
  std::string first = *Uploads().at(0).record.external_id;
  Restart(dead);
  ASSERT_TRUE(AwaitRequest());
  NodeId node = Serve();
  EXPECT_TRUE(Await([&] { return Read(node).state == NodeState::kInUse; }, 1min));
  Kill(dead);
  EXPECT_THAT(time_.Run(store_->nodes.Contenders(node)), IsEmpty())
      << "launchers delete what nobody has locked";
  EXPECT_THAT(Uploads(ImageState::kReady), IsEmpty());
  Restart(dead);
  ASSERT_TRUE(AwaitRequest());
  Serve();
  ASSERT_TRUE(AwaitUploads(1));
  EXPECT_TRUE(Await([&] { return Uploads().size() == 1 && cloud().images().size() == 1; }, 10min));
  EXPECT_FALSE(cloud().images().contains(first));
}

// VAL-8
TEST_F(ValidationTest, OthersDoNotWaitForIt) {
  workers_.uploads = 1;
  Configure();
  diskimages_ = "[{name: debian, validate: true}, {name: other}]";
  providers_ += Provider("second", "{name: other}");
  Load();
  Start();
  ASSERT_TRUE(AwaitRequest());
  EXPECT_TRUE(Await([&] { return Uploads("other", "second").size() == 1; }, 1h));
  EXPECT_TRUE(
      Await([&] { return Uploads("other", "second").at(0).record.state == ImageState::kReady; }, 10min));
  EXPECT_EQ(Uploads().at(0).record.state, ImageState::kUploading);
}

// VAL-9
TEST_F(ValidationTest, AProviderWithoutALabelForItTakesItAsItIs) {
  diskimages_ = "[{name: debian, validate: true}]";
  Load();
  log::Capture log;
  Start();
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_EQ(log.Count("no pool of the provider that launches nodes has a label"), 1);
}

// VAL-9: operators take a provider out of service in this way, and its images are to stay new.
TEST_F(ValidationTest, ADisabledPoolValidatesNothing) {
  Configure();
  std::string pool = "{name: main, ";
  providers_.replace(providers_.find(pool), pool.size(), pool + "max-servers: 0, ");
  Load();
  Start();
  EXPECT_TRUE(AwaitUploads(1));
  EXPECT_THAT(Requests(), IsEmpty());
}

// VAL-3
TEST_F(ValidationTest, ThePreviousUploadStaysInUseMeanwhile) {
  Configure();
  diskimages_ = "[{name: debian, rebuild-age: 7200, validate: {command: /check}}]";
  Load();
  Start();
  ASSERT_TRUE(AwaitRequest());
  Serve();
  ASSERT_TRUE(AwaitUploads(1));
  ASSERT_TRUE(AwaitRequest(10h)) << "of the next build";
  ASSERT_EQ(Uploads(ImageState::kReady).size(), 1u);
  time_.Advance(30min);
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 1u);
  Answer(RequestState::kFailed);
  ErrorOfUpload();
  EXPECT_EQ(Uploads(ImageState::kReady).size(), 1u);
}

}  // namespace
}  // namespace nodepool::builder
