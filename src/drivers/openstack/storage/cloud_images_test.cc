// Images that labels name, and that may not be there.
#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {
namespace {

using namespace std::chrono_literals;
using driver::Readiness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CloudImagesTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    config->cloud_images["debian"].external_name = "trixie";
  }
  Readiness Ask() { return provider->LabelReady(*label); }
  int Looks() const { return imposter.Count("GET", "/image/v2/images"); }
};

// Somebody who has only just made the image does not wait long; one that never comes costs little.
TEST_F(CloudImagesTest, AMissingImageIsLookedForAfterGrowingPauses) {
  log::Capture capture;
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  std::vector<int> looks;
  for (Duration pause : {5s, 10s, 20s, 40s, 80s}) {
    time.Advance(pause - 1s);
    looks.push_back(Looks());
    time.Advance(1s);
  }
  EXPECT_THAT(looks, ElementsAre(0, 1, 2, 3, 4));
  imposter.ForgetCalls();
  time.Advance(1h);
  EXPECT_GE(Looks(), 12);
  EXPECT_LE(Looks(), 26) << "each five minutes, and each time the quota is read";
  EXPECT_EQ(capture.Count("has no active image trixie"), 1) << "it is told once";
  imposter.AddImage("trixie");
  int before = capacity_changes;
  time.Advance(300s);
  EXPECT_GT(capacity_changes, before) << "requests that wait are looked at again";
  EXPECT_EQ(Ask(), Readiness::kReady);
  imposter.ForgetCalls();
  time.Advance(1h);
  EXPECT_EQ(Looks(), 0) << "what is there is not looked for";
}

TEST_F(CloudImagesTest, OneCallLooksForAllThatAreMissing) {
  config->cloud_images["second"] = {{.name = "second", .external_name = "sid, \"not\" quoted"}};
  config->cloud_images["third"] = {{.name = "third", .external_name = "bookworm"}};
  config->cloud_images["fourth"] = {{.name = "fourth", .external_name = "known"}};
  imposter.AddImage("known");
  Start();
  time.Advance(5s);
  EXPECT_EQ(Looks(), 1);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), "") << "it cannot be quoted";
  imposter.AddImage("sid, \"not\" quoted");
  time.Advance(10s);
  EXPECT_EQ(Looks(), 2);
  imposter.AddImage("trixie");
  time.Advance(20s);
  EXPECT_EQ(Looks(), 3);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), R"(in:"bookworm","trixie")");
  EXPECT_EQ(Ask(), Readiness::kReady);
}

// A request comes long after the last look: it waits for a new one.
TEST_F(CloudImagesTest, NobodyIsDeclinedOnAnOldNo) {
  Start();
  time.Advance(5s + 10s + 20s);
  imposter.ForgetCalls();
  time.Advance(4s);
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "it was so four seconds ago";
  EXPECT_EQ(Looks(), 0);
  imposter.AddImage("trixie");
  time.Advance(1s);
  int before = capacity_changes;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), Readiness::kUnknown);
  time.Advance(100ms);
  EXPECT_EQ(Looks(), 1);
  EXPECT_GT(capacity_changes, before);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, ThoseWhoAskAllTheTimeCauseALookInFiveSeconds) {
  Start();
  imposter.ForgetCalls();
  for (int i = 0; i < 600; ++i) {
    time.Advance(100ms);
    Ask();
  }
  EXPECT_LE(Looks(), 12);
  time.Advance(100ms);
  EXPECT_EQ(Ask(), Readiness::kNotReady);
}

// O-az-change: also what was known is asked anew.
TEST_F(CloudImagesTest, AfterARefusalTheImageIsUnknown) {
  std::string id = imposter.AddImage("trixie");
  Start();
  Launch();
  imposter.images.erase(id);
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .status = 400, .body = "no such image"});
  LaunchFails();
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "the next attempts have looked for it";
  imposter.AddImage("trixie");
  time.Advance(5s);
  Launch();
}

TEST_F(CloudImagesTest, AnImageServiceThatFailsIsAskedAgain) {
  imposter.AddImage("trixie");
  imposter.Add({.method = "GET", .path = "/image/v2/images", .status = 500});
  Start();
  EXPECT_EQ(Ask(), Readiness::kUnknown) << "nobody is declined for that";
  time.Advance(6s);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

// D-97: names are exact, and two of one name are an error.
TEST_F(CloudImagesTest, TwoOfOneName) {
  imposter.AddImage("trixie");
  std::string twin = imposter.AddImage("trixie");
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  EXPECT_THAT(LaunchFails().message(), HasSubstr("Multiple matches found for image trixie"));
  imposter.images.at(twin).record["status"] = "deactivated";
  time.Advance(1min);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, ANameThatIsAnId) {
  config->cloud_images["debian"].external_name = imposter.images.begin()->first;
  Start();
  EXPECT_EQ(Ask(), Readiness::kReady);
  Launch();
  EXPECT_EQ(TextIn(LastServerRequest(), "imageRef"), imposter.images.begin()->first);
}

}  // namespace
}  // namespace nodepool::drivers::openstack
