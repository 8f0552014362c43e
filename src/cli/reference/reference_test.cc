#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/reference/command_line.h"

namespace nodepool::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ReferenceTest : public ::testing::Test {
 protected:
  const CommandLine& Program(std::string_view name) const {
    return *std::ranges::find(programs_, name, &CommandLine::name);
  }
  const CommandLine& Command(const std::string& name) const {
    return *std::ranges::find(programs_.front().commands, name, &CommandLine::name);
  }
  static const OptionLine& Option(const CommandLine& command, std::string_view name) {
    return *std::ranges::find_if(command.options, [&](const OptionLine& option) {
      return std::ranges::find(option.names, name) != option.names.end();
    });
  }

  std::vector<CommandLine> programs_ = AllPrograms();
};

TEST_F(ReferenceTest, SaysWhatIsDeclared) {
  EXPECT_EQ(programs_.size(), 6U);
  const OptionLine& config = Option(Program("nodepool-launcher"), "-c");
  EXPECT_EQ(config.value, "FILE");
  EXPECT_EQ(config.default_value, "/etc/nodepool/nodepool.yaml");
  EXPECT_EQ(config.help, "configuration file");
  EXPECT_EQ(Option(Program("nodepool-builder"), "--build-workers").default_value, "1");
  EXPECT_EQ(Option(Program("nodepool-launcher"), "-f").value, "") << "it takes none";
  EXPECT_THAT(Command("migrate").places.front().choices,
              ElementsAre("to-ensemble", "to-embedded", "to-chroot"));
  EXPECT_EQ(Option(Command("standalone"), "--upload-workers").default_value, "4");
  for (const CommandLine& program : programs_) {
    for (const OptionLine& option : program.options) {
      EXPECT_FALSE(option.help.empty()) << program.name;
      EXPECT_THAT(option.names, Not(::testing::Contains("--cleanup-interval"))) << "it is hidden";
    }
  }
}

TEST_F(ReferenceTest, ManualPages) {
  std::string page = ManPage(Program("nodepool-launcher"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "\n.TP\n\\fB\\-c\\fR \\fIFILE\\fR\nConfiguration file.\nDefault: /etc/nodepool/nodepool.yaml.\n"));
  EXPECT_THAT(page, HasSubstr(".SH SIGNALS\n"));
  EXPECT_EQ(ManSection(Program("nodepool-launcher")), 8);
  std::string tool = ManPage(Program("nodepool"));
  EXPECT_THAT(tool, HasSubstr("\n.SS image\\-delete\n\\fBnodepool image\\-delete\\fR [options] [ID]\n"));
  EXPECT_THAT(tool, HasSubstr("\\fBnodepool hold\\fR [options] [NODE...]\n"));
  EXPECT_THAT(tool, HasSubstr("\\fBnodepool alien\\-list\\fR [options] [PROVIDER]\n"));
  EXPECT_THAT(tool, HasSubstr("One of to\\-ensemble, to\\-embedded, to\\-chroot.\n"));
  EXPECT_THAT(tool, HasSubstr("\n.TP\n\\fB\\-\\-watch\\fR [\\fISECONDS\\fR]\n"));
  EXPECT_EQ(ManSection(Program("nodepool")), 1);
}

TEST_F(ReferenceTest, Completions) {
  EXPECT_THAT(BashCompletion(Program("nodepool")), HasSubstr("complete -F _nodepool nodepool\n"));
  EXPECT_THAT(BashCompletion(Program("nodepool-launcher")),
              HasSubstr("complete -F _nodepool_launcher nodepool-launcher\n"));
  EXPECT_THAT(ZshCompletion(Program("nodepool")), HasSubstr("\n        'list:list nodes'"));
  EXPECT_THAT(ZshCompletion(Program("nodepool")), HasSubstr("]::SECONDS: '")) << "its value may be left out";
  EXPECT_THAT(BashCompletion(Program("nodepool")), Not(HasSubstr("list,--watch")));
  for (std::string script : {BashCompletion(Program("nodepool")), ZshCompletion(Program("nodepool")),
                             FishCompletion(Program("nodepool"))}) {
    EXPECT_THAT(script, HasSubstr("_nodepool_values providers"));
    EXPECT_THAT(script, HasSubstr("requested pending fulfilled failed"));
    EXPECT_THAT(script, HasSubstr("auto always never"));
  }
  EXPECT_THAT(
      FishCompletion(Program("nodepool")),
      HasSubstr(
          "complete -c nodepool -n '__fish_seen_subcommand_from list' -l detail -d 'show all columns'\n"));
}

}  // namespace
}  // namespace nodepool::cli
