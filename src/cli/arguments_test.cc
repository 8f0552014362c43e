#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ArgumentsTest : public ::testing::Test {
 protected:
  // The exit status, or -1 when there is a command to run.
  int Parse(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    std::variant<Invocation, int> result = ParseArguments(std::move(arguments), out_, err_);
    if (const int* status = std::get_if<int>(&result)) return *status;
    invocation_ = std::move(std::get<Invocation>(result));
    return -1;
  }

  std::ostringstream out_;
  std::ostringstream err_;
  Invocation invocation_;
};

// operations.md 16.1.
TEST_F(ArgumentsTest, WithoutASubcommandPrintsHelpAndFails) {
  EXPECT_EQ(Parse({}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("config-validate"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ArgumentsTest, UsageErrorsGoToStandardErrorWithStatusTwo) {
  for (std::vector<std::string> bad :
       std::vector<std::vector<std::string>>{{"bogus"},
                                             {"lis"},
                                             {"list", "--bogus"},
                                             {"list", "-c", "x"},
                                             {"--detail", "list"},
                                             {"delete"},
                                             {"delete", "1", "2"},
                                             {"delete", "1", "--reason", "x"},
                                             {"hold", "1", "--reason"},
                                             {"hold", "1", "--reason", "\xff"},
                                             {"hold", "1", "--reason", std::string(1001, 'x')},
                                             {"request"},
                                             {"request", "a", "--priority", "1000"},
                                             {"request", "a", "--hold-for", "5m"},
                                             {"request", "a", "--wait", "--hold-for", "x"},
                                             {"release"}}) {
    EXPECT_EQ(Parse(bad), 2) << ::testing::PrintToString(bad);
    EXPECT_EQ(out_.str(), "");
    EXPECT_THAT(err_.str(), StartsWith("usage: nodepool"));
    EXPECT_THAT(err_.str(), HasSubstr("error: "));
  }
}

TEST_F(ArgumentsTest, HelpAndVersionGoToStandardOutput) {
  EXPECT_EQ(Parse({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("request-list"));
  EXPECT_EQ(Parse({"request", "-h"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("--hold-for"));
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_THAT(out_.str(), StartsWith("Nodepool version: "));
}

TEST_F(ArgumentsTest, ToolOptionsStandBeforeTheSubcommand) {
  EXPECT_EQ(Parse({"-c", "/a", "-s", "/b", "--debug", "list", "--detail"}), -1);
  EXPECT_EQ(invocation_.config_path, "/a");
  EXPECT_EQ(invocation_.secure_path, "/b");
  EXPECT_TRUE(invocation_.is_debug);
  EXPECT_TRUE(invocation_.command);
  EXPECT_EQ(Parse({"list"}), -1);
  EXPECT_EQ(invocation_.config_path, "/etc/nodepool/nodepool.yaml");
  EXPECT_FALSE(invocation_.secure_path);
}

// operations.md 1: any unambiguous prefix of a long option.
TEST_F(ArgumentsTest, LongOptionsMayBeShortened) {
  EXPECT_EQ(Parse({"--deb", "list", "--det"}), -1);
  EXPECT_TRUE(invocation_.is_debug);
  EXPECT_EQ(Parse({"request", "a", "--wait", "--hold=5m", "--ten", "demo"}), -1);
  EXPECT_EQ(Parse({"request", "a", "--pr", "1"}), 2) << "--priority or --provider";
  EXPECT_EQ(Parse({"request", "a", "--prov", "--pri"}), -1) << "a value is no option";
}

TEST_F(ArgumentsTest, StandaloneIsWrittenFirst) { EXPECT_EQ(Parse({"-c", "/a", "standalone"}), 2); }

TEST_F(ArgumentsTest, ValidationIsNoCommandOfTheTree) {
  EXPECT_EQ(Parse({"config-validate"}), -1);
  EXPECT_TRUE(invocation_.is_validation);
  EXPECT_FALSE(invocation_.command);
}

}  // namespace
}  // namespace nodepool::cli
