// Cloud images that labels name, and that may not exist.
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
  int Refreshes() const { return imposter.Count("GET", "/image/v2/images"); }
};

// A new image is found soon; one that never appears costs few calls.
TEST_F(CloudImagesTest, AMissingImageIsCheckedAgainAfterGrowingPauses) {
  log::Capture capture;
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  std::vector<int> counts;
  for (Duration pause : {5s, 10s, 20s, 40s, 80s}) {
    time.Advance(pause - 1s);
    counts.push_back(Refreshes());
    time.Advance(1s);
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4));
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_GE(Refreshes(), 12);
  EXPECT_LE(Refreshes(), 26) << "each five minutes, and each time the quota is read";
  EXPECT_EQ(capture.Count("has no active image trixie"), 1) << "it is logged once";
  imposter.AddImage("trixie");
  int before = capacity_changes;
  time.Advance(300s);
  EXPECT_GT(capacity_changes, before) << "waiting requests are evaluated again";
  EXPECT_EQ(Ask(), Readiness::kReady);
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_EQ(Refreshes(), 0) << "existing images are not checked again";
}

TEST_F(CloudImagesTest, OneCallChecksAllMissingImages) {
  config->cloud_images["second"] = {{.name = "second", .external_name = "sid, \"not\" quoted"}};
  config->cloud_images["third"] = {{.name = "third", .external_name = "bookworm"}};
  config->cloud_images["fourth"] = {{.name = "fourth", .external_name = "known"}};
  imposter.AddImage("known");
  Start();
  time.Advance(5s);
  EXPECT_EQ(Refreshes(), 1);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), "") << "it cannot be quoted";
  imposter.AddImage("sid, \"not\" quoted");
  time.Advance(10s);
  EXPECT_EQ(Refreshes(), 2);
  imposter.AddImage("trixie");
  time.Advance(20s);
  EXPECT_EQ(Refreshes(), 3);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), R"(in:"bookworm","trixie")");
  EXPECT_EQ(Ask(), Readiness::kReady);
}

// drivers.md 5.12
TEST_F(CloudImagesTest, ASecondLookFindsWhatAppearedRightAfterTheFirst) {
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  imposter.AddImage("trixie");
  time.Advance(1s);
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "it was so a second ago";
  time.Run(provider->LookAgain());
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, ASecondLookFindsNewFlavors) {
  config->cloud_images["debian"].external_name = "debian";
  label->flavor_name = "m9.new";
  Start();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  imposter.flavors["new"] = {"m9.new", 3, 1024};
  time.Run(provider->LookAgain());
  EXPECT_EQ(Ask(), Readiness::kReady);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 3);
}

// A request comes long after the last refresh: it waits for a new one.
TEST_F(CloudImagesTest, NoRequestIsDeclinedOnAnOldResult) {
  Start();
  time.Advance(5s + 10s + 20s);
  imposter.ClearCalls();
  time.Advance(4s);
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "it was so four seconds ago";
  EXPECT_EQ(Refreshes(), 0);
  imposter.AddImage("trixie");
  time.Advance(1s);
  int before = capacity_changes;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), Readiness::kUnknown);
  time.Advance(100ms);
  EXPECT_EQ(Refreshes(), 1);
  EXPECT_GT(capacity_changes, before);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, FrequentQueriesCauseOneRefreshInFiveSeconds) {
  Start();
  imposter.ClearCalls();
  for (int i = 0; i < 600; ++i) {
    time.Advance(100ms);
    Ask();
  }
  EXPECT_LE(Refreshes(), 12);
  time.Advance(100ms);
  EXPECT_EQ(Ask(), Readiness::kNotReady);
}

// O-az-change: cached images are looked up again, too.
TEST_F(CloudImagesTest, AfterARefusalTheImageIsUnknown) {
  std::string id = imposter.AddImage("trixie");
  Start();
  Launch();
  imposter.images.erase(id);
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .status = 400, .body = "no such image"});
  LaunchFails();
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "the next attempts have checked for it";
  imposter.AddImage("trixie");
  time.Advance(5s);
  Launch();
}

TEST_F(CloudImagesTest, AnImageServiceThatFailsIsCalledAgain) {
  imposter.AddImage("trixie");
  imposter.Add({.method = "GET", .path = "/image/v2/images", .status = 500});
  Start();
  EXPECT_EQ(Ask(), Readiness::kUnknown) << "no request is declined for that";
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
