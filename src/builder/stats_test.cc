#include "builder/builder_fixture_for_test.h"
#include "builder/stats_metrics.h"

namespace nodepool::builder {
namespace {

using namespace std::chrono_literals;

// Stores the last values that it received.
class Recorder : public metrics::Sink {
 public:
  void Set(const metrics::Metric& gauge, const metrics::LabelValues& labels, double value) override {
    values[metrics::KeyOf(gauge, labels)] = value;
  }
  void Add(const metrics::Metric& counter, const metrics::LabelValues& labels, std::int64_t by) override {
    values[metrics::KeyOf(counter, labels) + " count"] += static_cast<double>(by);
  }
  void Observe(const metrics::Metric& timing, const metrics::LabelValues& labels, Duration took) override {
    values[metrics::KeyOf(timing, labels) + " seconds"] = std::chrono::duration<double>(took).count();
  }
  std::map<std::string, double> values;
};

class BuilderStatsTest : public BuilderTest {
 protected:
  BuilderStatsTest() { metrics_ = metrics::Metrics(&recorder_, nullptr); }
  std::map<std::string, double>& values() { return recorder_.values; }

  Recorder recorder_;
};

// builder.md 15.1; B-failed-build
TEST_F(BuilderStatsTest, BuildsAndUploadsAreMeasured) {
  Host& host = Start();
  ASSERT_TRUE(Await([&] { return !Builds().empty(); }));
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 90s; });
  ASSERT_TRUE(AwaitUploads(1));
  std::string build = "nodepool.dib_image_build.debian.";
  EXPECT_EQ(values()[build + "qcow2.size"], 4096);
  EXPECT_EQ(values()[build + "status.rc"], 0);
  EXPECT_NEAR(values()[build + "status.duration seconds"], 600, 1);
  EXPECT_NEAR(values()[build + "status.last_build"], ToSeconds(Builds()[0].record.state_time), 2);
  EXPECT_NEAR(values()["nodepool.image_update.debian.cloud seconds"], 90, 1);
  EXPECT_EQ(values()["nodepool.image_update.debian.cloud count"], 1);
  host.runner.next_code = [] { return 127; };
  host.runner.build_time = 5min;
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(15min);
  EXPECT_EQ(values()[build + "status.rc"], 127);
  EXPECT_NEAR(values()[build + "status.duration seconds"], 300, 1);
}

// B-build-only
TEST_F(BuilderStatsTest, ABuildThatNoProviderWants) {
  diskimages_ = "[{name: debian, formats: [tar]}]";
  providers_ = "";
  Load();
  Start();
  ASSERT_TRUE(Await([&] { return !Builds(ImageState::kReady).empty(); }));
  EXPECT_EQ(Builds()[0].record.formats, std::vector<std::string>{"tar"});
  std::string build = "nodepool.dib_image_build.debian.";
  EXPECT_EQ(values()[build + "tar.size"], 4096);
  EXPECT_EQ(values().at(build + "status.rc"), 0);
  EXPECT_NEAR(values()[build + "status.last_build"], ToSeconds(Builds()[0].record.state_time), 2);
}

// B-formats
TEST_F(BuilderStatsTest, FormatsOfTwoProviders) {
  diskimages_ = "[{name: debian}, {name: fedora}]";
  providers_ = Provider("cloud", "{name: debian}") +
               Provider("other", "{name: fedora}", "simulation: {image-format: vhd}");
  Load();
  Start();
  ASSERT_TRUE(AwaitUploads(1));
  ASSERT_TRUE(Await([&] { return Uploads("fedora", "other").size() == 1; }));
  time_.Advance(2min);
  EXPECT_EQ(Builds("debian").at(0).record.formats, std::vector<std::string>{"qcow2"});
  EXPECT_EQ(Builds("fedora").at(0).record.formats, std::vector<std::string>{"vhd"});
  EXPECT_EQ(values()["nodepool.dib_image_build.debian.qcow2.size"], 4096);
  EXPECT_EQ(values()["nodepool.dib_image_build.fedora.vhd.size"], 4096);
  std::string own = "nodepool.builder.nb01.example.org.image.";
  EXPECT_EQ(values().at(own + "debian.build.state"), 0);
  EXPECT_EQ(values().at(own + "debian.provider.cloud.upload.state"), 0);
  EXPECT_EQ(values().at(own + "fedora.provider.other.upload.state"), 0);
}

// builder.md 15.2; B-cli-status
TEST_F(BuilderStatsTest, StatesAreReportedOnceAMinute) {
  providers_ = Provider("cloud", "{name: debian}") + Provider("other", "{name: debian, pause: true}");
  Load();
  Start();
  std::string own = "nodepool.builder.nb01.example.org.";
  std::string image = own + "image.debian.";
  time_.Advance(2min);
  EXPECT_EQ(values()[image + "build.state"], 1);
  EXPECT_EQ(values()[image + "provider.cloud.upload.state"], 0);
  EXPECT_EQ(values()[image + "provider.other.upload.state"], 3);
  EXPECT_EQ(values()[own + "current_builds"], 1);
  EXPECT_EQ(values()[own + "upload_workers"], 4);
  ChangeCloud([](drivers::FakeSimulation& settings) { settings.upload_latency = 1h; });
  time_.Advance(10min);
  EXPECT_EQ(values()[image + "build.state"], 0);
  EXPECT_EQ(values()[image + "provider.cloud.upload.state"], 2);
  time_.Run(store_->images.Pause(ImageName("debian")));
  time_.Run(store_->images.RequestBuild(ImageName("debian")));
  time_.Advance(2min);
  EXPECT_EQ(values()[image + "build.state"], 3);
  EXPECT_EQ(values()["nodepool.image.debian.image_build_requests"], 1);
  EXPECT_EQ(values()["nodepool.image_build_requests"], 1);
}

}  // namespace
}  // namespace nodepool::builder
