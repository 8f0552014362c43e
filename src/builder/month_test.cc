#include "base/testing/test_environment.h"
#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using namespace std::chrono_literals;

// A month of two builders and two clouds in which everything fails now and then.
class MonthTest : public BuilderTest {
 protected:
  using Pair = std::pair<std::string, std::string>;  // image, provider

  // Checked at each write: a provider that had a ready upload of an image still has one; and never more than
  // the current, the previous and the next one.
  void Inspect() {
    std::map<Pair, int> ready, uploading;
    for (const std::string& image : images_) {
      for (const std::string& build : Children("/nodepool/images/" + image + "/builds")) {
        for (const std::string& provider : clouds_in_use_) {
          std::string path =
              "/nodepool/images/" + image + "/builds/" + build + "/providers/" + provider + "/images";
          for (const std::string& number : Children(path))
            Count(path + "/" + number, {image, provider}, ready, uploading);
        }
      }
    }
    for (const auto& [pair, count] : ready) had_.insert(pair);
    for (const Pair& pair : had_) {
      if (ready[pair] == 0) ++without_image_;
      if (ready[pair] > 3 || ready[pair] + uploading[pair] > 4) ++too_many_;
    }
  }
  void Count(const std::string& path, const Pair& pair, std::map<Pair, int>& ready,
             std::map<Pair, int>& uploading) {
    zk::Result<zk::NodeData> node = zk_.tree().Get(path);
    if (!node || node->data.empty()) return;
    Expected<ImageUpload> upload = ParseImageUpload(node->data, WallTime());
    if (!upload) return;
    if (upload->state == ImageState::kReady) ++ready[pair];
    if (upload->state == ImageState::kUploading) ++uploading[pair];
  }
  std::vector<std::string> Children(const std::string& path) {
    zk::Result<zk::Children> children = zk_.tree().GetChildren(path);
    return children ? children->names : std::vector<std::string>();
  }

  std::vector<std::string> images_ = {"debian", "fedora"};
  std::vector<std::string> clouds_in_use_ = {"cloud", "other"};
  std::set<Pair> had_;
  int without_image_ = 0;
  int too_many_ = 0;
};

TEST_F(MonthTest, EveryImageStaysUsable) {
  diskimages_ = "[{name: debian}, {name: fedora, rebuild-age: 40000, delete-after-upload: true}]";
  providers_ = Provider("cloud", "{name: debian}, {name: fedora}") +
               Provider("other", "{name: debian}, {name: fedora}", "simulation: {image-format: raw}");
  Load();
  zk_.OnWrite([this](std::int64_t, const zk::WatchEvent& change) {
    bool is_upload = change.path.find("/providers/") != std::string::npos &&
                     change.path.find("/lock") == std::string::npos;
    if (is_upload) Inspect();
  });
  intervals_.cleanup = 5min;  // to shorten the test
  SeededRandom dice(7);
  Start("nb01");
  Start("nb02");
  for (const std::string& name : clouds_in_use_) {
    ChangeCloud(
        [](drivers::FakeSimulation& settings) {
          settings.upload_latency = 7min;
          settings.upload_failure_rate = 0.2;
          settings.delete_failure_rate = 0.2;
        },
        name);
  }
  for (auto& host : hosts_) {
    host->runner.next_code = [&dice] { return dice.Below(5) == 0 ? 1 : 0; };
  }
  for (int hour = 0; hour < testing::Often(30, 4) * 24; ++hour) {
    time_.Advance(std::chrono::seconds(dice.Below(3600)));
    Host& host = *hosts_[dice.Below(2)];
    switch (dice.Below(24)) {
      case 0:
        Kill(host);
        time_.Advance(5min);
        Restart(host);
        break;
      case 1:
        Stop(host);
        Restart(host);
        break;
      case 2:
        zk_.ExpireSession(*host.client);
        break;
      case 3:
        zk_.Disconnect(*host.client);
        time_.Advance(std::chrono::seconds(dice.Below(20)));
        zk_.Reconnect(*host.client);
        break;
      case 4:
        time_.Run(store_->images.RequestBuild(ImageName(images_[dice.Below(2)])));
        break;
      default:
        break;
    }
  }
  EXPECT_EQ(had_.size(), 4u);
  EXPECT_EQ(without_image_, 0);
  EXPECT_EQ(too_many_, 0);

  // After the faults, only the current and the previous upload are left.
  for (const std::string& name : clouds_in_use_) {
    ChangeCloud(
        [](drivers::FakeSimulation& settings) {
          settings.upload_failure_rate = 0;
          settings.delete_failure_rate = 0;
        },
        name);
  }
  for (auto& host : hosts_) host->runner.next_code = [] { return 0; };
  time_.Advance(72h);
  for (const std::string& image : images_) {
    EXPECT_LE(Builds(image).size(), 3u) << image;
    for (const std::string& name : clouds_in_use_)
      EXPECT_EQ(Uploads(image, name).size(), 2u) << image << name;
  }
  for (const std::string& name : clouds_in_use_) {
    std::set<std::string> known;
    for (const std::string& image : images_) {
      for (const store::StoredUpload& upload : Uploads(image, name)) known.insert(*upload.record.external_id);
    }
    for (const auto& [id, image] : cloud(name).images())
      EXPECT_TRUE(known.contains(id)) << name << " " << image.name;
  }
  for (auto& host : hosts_) {
    for (const std::string& name : host->files.names) {
      EXPECT_TRUE(time_.Run(store_->images.BuildExists(ParseLocalName(name)->build))) << name;
    }
  }
}

}  // namespace
}  // namespace nodepool::builder
