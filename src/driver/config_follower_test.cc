#include "driver/config_follower.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "async/deadline.h"
#include "base/logging.h"
#include "testing/virtual_time.h"

namespace nodepool::driver {
namespace {

constexpr char kGood[] = "labels: [{name: small}]\nproviders: []\n";
constexpr char kOther[] = "labels: [{name: large}]\nproviders: []\n";
constexpr char kBad[] = "labels: [{name: small}\n";

class ConfigFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "nodepool-follower-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    Write("nodepool.yaml", kGood);
    Write("secure.yaml", "{}");
    follower_ = std::make_unique<ConfigFollower>(time_.loop(), folder_ / "nodepool.yaml",
                                                 folder_ / "secure.yaml", drivers_, nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // As editors and configuration management do it: a new file takes the name.
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / "new") << text;
    std::filesystem::rename(folder_ / "new", folder_ / name);
  }
  // The next configuration, or null when there is none within `limit`.
  std::shared_ptr<const LoadedConfig> Next(Duration limit) {
    auto next = WithDeadline(time_.loop(), time_.loop().SteadyNow() + limit, "waiting", follower_->Next());
    try {
      return time_.Run(std::move(next));
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kRetry) << error.message();
      return nullptr;
    }
  }
  static bool HasLabel(const LoadedConfig& config, const std::string& label) {
    return config.common.labels.contains(LabelName(label));
  }

  std::filesystem::path folder_;
  testing::VirtualTime time_;
  Registry drivers_;
  std::unique_ptr<ConfigFollower> follower_;
};

TEST_F(ConfigFollowerTest, NothingHappensWhileNothingChanges) {
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr);
}

TEST_F(ConfigFollowerTest, AChangedFileIsLoadedWithinASecond) {
  Write("nodepool.yaml", kOther);
  auto config = Next(std::chrono::milliseconds(1100));
  ASSERT_TRUE(config);
  EXPECT_TRUE(HasLabel(*config, "large"));
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr) << "once";
}

TEST_F(ConfigFollowerTest, AChangedSecureFileCounts) {
  Write("secure.yaml", "zookeeper-servers: [{host: localhost}]");
  EXPECT_TRUE(Next(std::chrono::seconds(2)));
}

TEST_F(ConfigFollowerTest, ReloadLoadsThoughNothingChanged) {
  follower_->Reload();
  EXPECT_TRUE(Next(std::chrono::seconds(2)));
}

// BB-24
TEST_F(ConfigFollowerTest, ABadFileIsReportedOnceAndTheMendedOneLoaded) {
  log::Capture log;
  Write("nodepool.yaml", kBad);
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr);
  EXPECT_EQ(log.Count("stays in force"), 1);
  EXPECT_EQ(log.Count("nodepool.yaml: line 2"), 1) << "the place is named";
  Write("nodepool.yaml", kOther);
  auto config = Next(std::chrono::seconds(2));
  ASSERT_TRUE(config);
  EXPECT_TRUE(HasLabel(*config, "large"));
}

TEST_F(ConfigFollowerTest, AnAbsentFileIsBadAndItsReturnIsSeen) {
  std::filesystem::rename(folder_ / "nodepool.yaml", folder_ / "away");
  EXPECT_EQ(Next(std::chrono::seconds(5)), nullptr);
  std::filesystem::rename(folder_ / "away", folder_ / "nodepool.yaml");
  EXPECT_TRUE(Next(std::chrono::seconds(2)));
}

}  // namespace
}  // namespace nodepool::driver
