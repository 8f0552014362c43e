#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "base/text.h"
#include "cli/command.h"
#include "cli/fixture_for_test.h"
#include "daemon/options.h"

namespace nodepool::cli {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kWidth = 80;

void ExpectNarrow(const CLI::App& app) {
  for (const std::string& line : Split(app.help(), '\n'))
    EXPECT_LE(line.size(), kWidth) << app.get_name() << ": " << line;
}

// CLI11 from 2.4 on refuses a positional that has the name of an option of its command.
void ExpectNamesOfTheirOwn(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    std::vector<std::string> own = option->get_lnames();
    own.insert(own.end(), option->get_snames().begin(), option->get_snames().end());
    if (option->get_positional()) own.push_back(option->get_name(true));
    for (const std::string& name : own) {
      EXPECT_TRUE(names.insert(name).second) << app.get_name() << ": " << name;
      EXPECT_EQ(name.find_first_of(" =:{\n"), name.npos) << app.get_name() << ": " << name;
    }
  }
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

TEST(HelpTest, EveryLineFitsEightyColumns) {
  DescribeTool([](const CLI::App& app) {
    ExpectNarrow(app);
    for (const CLI::App* command : CommandsOf(app)) ExpectNarrow(*command);
  });
  daemon::LauncherOptions launcher;
  daemon::BuilderOptions builder;
  daemon::RunnersOptions runners;
  daemon::StandaloneOptions standalone = daemon::StandaloneDefaults();
  daemon::StandaloneOptions nodepoold = daemon::NodepooldDefaults();
  ExpectNarrow(*LauncherApp(launcher));
  ExpectNarrow(*BuilderApp(builder));
  ExpectNarrow(*RunnersApp(runners));
  ExpectNarrow(*StandaloneApp(standalone));
  ExpectNarrow(*NodepooldApp(nodepoold));
}

TEST(HelpTest, NoPositionalHasTheNameOfAnOption) {
  DescribeTool([](const CLI::App& app) {
    ExpectNamesOfTheirOwn(app);
    for (const CLI::App* command : CommandsOf(app)) ExpectNamesOfTheirOwn(*command);
  });
}

TEST(HelpTest, CommandsAreGroupedAndThereAreExamples) {
  DescribeTool([](const CLI::App& app) {
    std::string help = app.help();
    std::size_t place = 0;
    for (const char* words : {"\nLooking:\n  status ", "\nAsking:\n  request ", "\nChanging:\n  delete ",
                              "\nImages:\n", "\nSetting up:\n", "\nExamples:\n  nodepool "}) {
      std::size_t found = help.find(words);
      EXPECT_NE(found, std::string::npos) << words;
      EXPECT_GE(found, place) << words << " comes too early";
      place = found;
    }
    EXPECT_THAT(help, Not(HasSubstr("complete"))) << "it is for shells";
  });
}

TEST(HelpTest, ValuesThatMayBeLeftOutAndDefaultsAreShown) {
  DescribeTool([](const CLI::App& app) {
    EXPECT_THAT(app.get_subcommand("list")->help(), HasSubstr("  --watch [SECONDS] "));
    EXPECT_THAT(app.get_subcommand("request")->help(), HasSubstr("(default: 200)"));
    EXPECT_THAT(app.get_subcommand("image-upload")->help(),
                HasSubstr("image-upload [OPTIONS] [PROVIDER] IMAGE\n"));
    EXPECT_THAT(app.help(), HasSubstr("(default:\n                          /etc/nodepool/nodepool.yaml)"));
  });
}

class CompleteTest : public CommandTest {
 protected:
  std::string Of(const std::string& kind) { return Shown({"complete", kind}); }
};

TEST_F(CompleteTest, NamesAreThoseOfTheConfiguration) {
  config_->common.labels[LabelName("large")];
  config_->common.labels[LabelName("small")];
  config_->common.diskimages[ImageName("debian")];
  config_->common.providers.emplace_back().name = ProviderName("cloud");
  EXPECT_EQ(Of("labels"), "large\nsmall\n");
  EXPECT_EQ(Of("images"), "debian\n");
  EXPECT_EQ(Of("providers"), "cloud\n");
}

TEST_F(CompleteTest, IdsAreThoseOfTheTree) {
  EXPECT_EQ(Of("nodes"), "");
  AddNode(ReadyNode());
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1));
  time_.Run(others_.requests.Create("200", request, true));
  Put("/nodepool/images/debian/builds/0000000001", R"({"state": "ready"})");
  EXPECT_EQ(Of("nodes"), "0000000000\n");
  EXPECT_EQ(Of("requests"), "200-0000000000\n");
  EXPECT_EQ(Of("builds"), "debian-0000000001\n");
}

TEST_F(CompleteTest, EveryKindHasValues) {
  for (const char* kind :
       {"builds", "images", "labels", "nodes", "providers", "requests", "requests-and-nodes"})
    EXPECT_EQ(Of(kind), "") << kind;
}

}  // namespace

}  // namespace nodepool::cli
