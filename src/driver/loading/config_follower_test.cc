#include "driver/loading/config_follower.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/deadline.h"
#include "async/testing/virtual_time.h"
#include "base/log/logging.h"
#include "base/testing/test_environment.h"
#include "driver/driver.h"

namespace nodepool::driver {

namespace {

constexpr char kGood[] = "labels: [{name: small}]\nproviders: []\n";
constexpr char kOther[] = "labels: [{name: large}]\nproviders: []\n";
constexpr char kBad[] = "labels: [{name: small}\n";

class ConfigFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("nodepool.yaml", kGood);
    Write("secure.yaml", "{}");
    follower_ = std::make_unique<ConfigFollower>(time_.loop(), folder_ / "nodepool.yaml",
                                                 folder_ / "secure.yaml", drivers_, nullptr);
  }

  // As editors and configuration management do: renames a new file over the old one.
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / "new") << text;
    std::filesystem::rename(folder_ / "new", folder_ / name);
  }
  // The next configuration, or null if there is none within `limit`.
  std::shared_ptr<const LoadedConfig> Next(Duration limit) {
    auto next = WithDeadline(time_.loop(), time_.loop().SteadyNow() + limit, "waiting", follower_->Next());
    try {
      return time_.Run(std::move(next));
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kTimedOut) << error.message();
      return nullptr;
    }
  }
  static bool HasLabel(const LoadedConfig& config, const std::string& label) {
    return config.common.labels.contains(LabelName(label));
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
  testing::VirtualTime time_;
  Registry drivers_;
  std::unique_ptr<ConfigFollower> follower_;
};

TEST_F(ConfigFollowerTest, NothingHappensWhileNothingChanges) {
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr);
}

TEST_F(ConfigFollowerTest, AChangedFileIsLoadedAtOnce) {
  Write("nodepool.yaml", kOther);
  auto config = Next(std::chrono::milliseconds(50));
  ASSERT_TRUE(config);
  EXPECT_TRUE(HasLabel(*config, "large"));
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr) << "once";
}

TEST_F(ConfigFollowerTest, AChangedSecureFileCounts) {
  Write("secure.yaml", "zookeeper-servers: [{host: localhost}]");
  EXPECT_TRUE(Next(std::chrono::milliseconds(50)));
}

TEST_F(ConfigFollowerTest, ReloadLoadsThoughNothingChanged) {
  follower_->Reload();
  EXPECT_TRUE(Next(std::chrono::milliseconds(50)));
}

// Like a volume of a ConfigMap: a link is changed to another directory with all files.
TEST_F(ConfigFollowerTest, AChangedLinkInThePathIsNoticed) {
  namespace fs = std::filesystem;
  for (const auto& [name, text] : {std::pair("one", kGood), std::pair("two", kOther)}) {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "mounted.yaml") << text;
  }
  fs::create_symlink("one", folder_ / "data");
  fs::create_symlink("data/mounted.yaml", folder_ / "mounted.yaml");
  follower_ = std::make_unique<ConfigFollower>(time_.loop(), folder_ / "mounted.yaml", std::nullopt, drivers_,
                                               nullptr);
  fs::create_symlink("two", folder_ / "data_tmp");
  fs::rename(folder_ / "data_tmp", folder_ / "data");
  auto config = Next(std::chrono::milliseconds(50));
  ASSERT_TRUE(config);
  EXPECT_TRUE(HasLabel(*config, "large"));
}

// As some editors write: the incomplete file in between is not an error.
TEST_F(ConfigFollowerTest, AFileWrittenInStepsIsLoadedWhenCompleteWithoutAnError) {
  log::Capture log;
  std::filesystem::rename(folder_ / "nodepool.yaml", folder_ / "nodepool.yaml~");
  EXPECT_EQ(Next(std::chrono::milliseconds(300)), nullptr);
  std::ofstream file(folder_ / "nodepool.yaml");
  file << "labels: [" << std::flush;
  EXPECT_EQ(Next(std::chrono::milliseconds(300)), nullptr);
  file << "{name: large}]\n";
  file.close();
  EXPECT_TRUE(Next(std::chrono::milliseconds(50)));
  EXPECT_EQ(log.Count("stays in force"), 0);
}

TEST_F(ConfigFollowerTest, ABadFileIsReportedAfterASecondAndAtOnceAfterReload) {
  log::Capture log;
  Write("nodepool.yaml", kBad);
  EXPECT_EQ(Next(std::chrono::milliseconds(900)), nullptr);
  EXPECT_EQ(log.Count("stays in force"), 0);
  EXPECT_EQ(Next(std::chrono::milliseconds(1200)), nullptr);
  EXPECT_EQ(log.Count("stays in force"), 1);
  Write("nodepool.yaml", "labels: 5");
  follower_->Reload();
  EXPECT_EQ(Next(std::chrono::milliseconds(50)), nullptr);
  EXPECT_EQ(log.Count("stays in force"), 2);
}

// BB-24
TEST_F(ConfigFollowerTest, ABadFileIsReportedOnceAndTheFixedOneLoaded) {
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

// BB-24
TEST_F(ConfigFollowerTest, ARejectedFileIsAnnouncedUntilAGoodOneIsLoaded) {
  std::vector<ConfigFollower::Rejected> seen;
  follower_->OnRejection([&](const ConfigFollower::Rejected& rejected) { seen.push_back(rejected); });
  Write("nodepool.yaml", kBad);
  EXPECT_EQ(Next(std::chrono::seconds(30)), nullptr);
  ASSERT_GE(seen.size(), 2u) << "tried again";
  ASSERT_TRUE(seen.front() && seen.back());
  EXPECT_NE(seen.front()->error.find("nodepool.yaml: line 2"), std::string::npos) << seen.front()->error;
  EXPECT_EQ(seen.front()->since, seen.back()->since);
  Write("nodepool.yaml", kGood);
  EXPECT_TRUE(Next(std::chrono::seconds(2)));
  EXPECT_EQ(seen.back(), std::nullopt);
}

TEST_F(ConfigFollowerTest, AnAbsentFileIsBadAndItsReturnIsSeen) {
  std::filesystem::rename(folder_ / "nodepool.yaml", folder_ / "away");
  EXPECT_EQ(Next(std::chrono::seconds(5)), nullptr);
  std::filesystem::rename(folder_ / "away", folder_ / "nodepool.yaml");
  EXPECT_TRUE(Next(std::chrono::milliseconds(50)));
}

// A driver whose clouds cannot be used while `fault` says so.
class SickDriver : public Driver {
 public:
  explicit SickDriver(const std::string& fault) : fault_(fault) {}
  std::string_view name() const override { return "sick"; }
  const config::Schema& ProviderSchema() const override {
    static const config::Schema anything = config::Schema::Any();
    return anything;
  }
  std::shared_ptr<const ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                           config::Config&) override {
    auto config = std::make_shared<ProviderConfig>();
    config->name = section.name;
    config->fault = fault_;
    return config;
  }
  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment,
                                           std::shared_ptr<const ProviderConfig>) override {
    return nullptr;
  }

 private:
  const std::string& fault_;
};

// configuration.md 12
TEST_F(ConfigFollowerTest, AProviderWhoseCloudCannotBeUsedIsTriedAgainUntilItCan) {
  std::string fault = "there is no cloud nowhere";
  drivers_.Add(std::make_unique<SickDriver>(fault));
  Write("nodepool.yaml", "providers: [{name: p, driver: sick}]\n");
  auto config = Next(std::chrono::seconds(2));
  ASSERT_TRUE(config) << "it keeps nothing else from being loaded";
  EXPECT_EQ(config->providers.at(ProviderName("p"))->fault, fault);
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr) << "nothing has changed";
  fault.clear();
  config = Next(std::chrono::seconds(11));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->providers.at(ProviderName("p"))->fault, "");
  EXPECT_EQ(Next(std::chrono::minutes(5)), nullptr);
}

TEST(ConfiguredByTest, AnImageThatAProviderDoesNotUploadNowIsNotConfiguredForIt) {
  LoadedConfig config;
  auto provider = std::make_shared<ProviderConfig>();
  provider->name = ProviderName("cloud");
  provider->manages_images = true;
  for (const char* name : {"debian", "fedora"}) {
    const ImageName image(name);
    config.common.diskimages[image].name = image;
    auto upload = std::make_shared<ProviderDiskImage>();
    upload->is_paused = image == ImageName("fedora");
    provider->diskimages[image] = upload;
  }
  config.providers[provider->name] = provider;
  const listing::Configured configured = ConfiguredBy(config);
  EXPECT_TRUE(configured.images.at(ImageName("debian")).labels.contains(provider->name));
  EXPECT_FALSE(configured.images.at(ImageName("fedora")).labels.contains(provider->name));
}

}  // namespace

}  // namespace nodepool::driver
