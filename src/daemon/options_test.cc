#include "daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::daemon {

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class ProgramOptions>
std::optional<int> Parse(std::shared_ptr<CLI::App> (*make_app)(ProgramOptions&),
                         std::vector<std::string> words, ProgramOptions& options) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return ParseOptions(static_cast<int>(argv.size()), argv.data(), *make_app(options), options);
}

// operations.md 2
TEST(DaemonOptionsTest, TheyRunInTheBackgroundByDefault) {
  LauncherOptions launcher;
  EXPECT_EQ(Parse(LauncherApp, {}, launcher), std::nullopt);
  EXPECT_FALSE(launcher.is_foreground);
  EXPECT_EQ(launcher.config_path, "/etc/nodepool/nodepool.yaml");
  EXPECT_EQ(launcher.pid_path, "/var/run/nodepool/nodepool.pid");
  BuilderOptions builder;
  EXPECT_EQ(Parse(BuilderApp, {"-p", "x.pid"}, builder), std::nullopt);
  EXPECT_THAT(builder.pid_path, EndsWith("/x.pid"));
  EXPECT_EQ(builder.pid_path[0], '/') << "the directory will be another one";
  for (const char* option : {"-f", "-d"}) {
    LauncherOptions stays;
    EXPECT_EQ(Parse(LauncherApp, {option}, stays), std::nullopt);
    EXPECT_TRUE(stays.is_foreground);
  }
  StandaloneOptions standalone = StandaloneDefaults();
  EXPECT_EQ(Parse(StandaloneApp, {}, standalone), std::nullopt);
  EXPECT_TRUE(standalone.is_foreground) << "it has no background";
}

// configuration.md 1
TEST(DaemonOptionsTest, ATildeIsTheHomeDirectory) {
  std::string home = std::getenv("HOME");
  LauncherOptions options;
  EXPECT_EQ(Parse(LauncherApp,
                  {"-c", "~/a", "-s", "~/b", "-l", "~/c.yaml", "-p", "~/d", "--drivers-dir", "~/e"}, options),
            std::nullopt);
  EXPECT_EQ(options.config_path, home + "/a");
  EXPECT_EQ(options.secure_path, home + "/b");
  EXPECT_EQ(options.logging_path, home + "/c.yaml");
  EXPECT_EQ(options.pid_path, home + "/d");
  EXPECT_THAT(options.drivers_dirs, ::testing::ElementsAre(home + "/e"));
}

// operations.13.1
TEST(DaemonOptionsTest, TheDaemonOfTheFirstReleases) {
  StandaloneOptions plain = NodepooldDefaults();
  EXPECT_EQ(Parse(NodepooldApp, {"-s", "/s"}, plain), std::nullopt);
  EXPECT_FALSE(plain.is_foreground);
  EXPECT_EQ(plain.pid_path, "/var/run/nodepool/nodepool.pid");
  EXPECT_EQ(plain.log_path, "/var/log/nodepool/nodepool.log");
  EXPECT_FALSE(plain.is_without_builder || plain.is_without_launches || plain.is_without_deletes);
  StandaloneOptions bare = NodepooldDefaults();
  EXPECT_EQ(
      Parse(NodepooldApp,
            {"--no-builder", "--no-launches", "--no-deletes", "--no-webapp", "--upload-workers", "2"}, bare),
      std::nullopt);
  EXPECT_TRUE(bare.is_without_builder && bare.is_without_launches && bare.is_without_deletes);
  EXPECT_TRUE(bare.is_without_webapp);
  EXPECT_EQ(bare.upload_workers, 2);
}

// operations.md 1: any unambiguous prefix of a long option.
TEST(DaemonOptionsTest, LongOptionsMayBeShortened) {
  LauncherOptions launcher;
  EXPECT_EQ(Parse(LauncherApp, {"--no-w", "--driv=/a", "--rep"}, launcher), std::nullopt);
  EXPECT_TRUE(launcher.is_without_webapp);
  EXPECT_TRUE(launcher.wants_repl);
  EXPECT_THAT(launcher.drivers_dirs, ::testing::ElementsAre("/a"));
  BuilderOptions builder;
  EXPECT_EQ(Parse(BuilderApp, {"--build-w", "7"}, builder), std::nullopt);
  EXPECT_EQ(builder.build_workers, 7);
}

TEST(DaemonOptionsTest, UsageErrorsHaveStatusTwo) {
  for (std::vector<std::string> bad : std::vector<std::vector<std::string>>{{"--bogus"},
                                                                            {"word"},
                                                                            {"-c"},
                                                                            {"--build-workers", "x"},
                                                                            {"--build-workers", "-1"},
                                                                            {"--cleanup-interval", "0"}}) {
    BuilderOptions options;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(BuilderApp, bad, options), 2) << ::testing::PrintToString(bad);
    std::string line = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(line, StartsWith("nodepool-builder: "));
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  }
}

TEST(DaemonOptionsTest, AMisspeltOptionIsNamedWithTheNearest) {
  LauncherOptions options;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Parse(LauncherApp, {"--versoin"}, options), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "nodepool-launcher: there is no option --versoin; did you mean --version?\n");
}

}  // namespace

}  // namespace nodepool::daemon
