#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

  // What is reported, which has to be one line.
  std::string ErrorLine() {
    std::string text = err_.str();
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    return text.substr(0, text.size() - 1);
  }

  std::ostringstream out_;
  std::ostringstream err_;
  Invocation invocation_;
};

// operations.16.1.
TEST_F(ArgumentsTest, WithoutASubcommandPrintsHelpAndFails) {
  EXPECT_EQ(Parse({}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("config-validate"));
  EXPECT_EQ(err_.str(), "");
}

// operations.16.1
TEST_F(ArgumentsTest, UsageErrorsGoToStandardErrorWithStatusTwo) {
  for (std::vector<std::string> bad : std::vector<std::vector<std::string>>{
           {"list", "--bogus"},
           {"list", "-c"},
           {"list", "--wait-for-server=soon"},
           {"--detail", "list"},
           {"delete"},
           {"delete", "1", "--state", "ready"},
           {"delete", "--state", "redy"},
           {"delete", "1", "--reason", "x"},
           {"hold", "1", "--reason"},
           {"hold", "1", "--reason", "\xff"},
           {"hold", "1", "--reason", std::string(1001, 'x')},
           {"exec", "a", "--token-file", "/dev/null", "--", "true"},
           {"exec", "a", "--server", "nowhere", "--", "true"},
           {"exec", "a", "--server", "http://h", "--lease", "5", "--", "true"},
           {"ssh", "a", "--server", "http://u:p@h"},
           {"request"},
           {"request", "a", "--priority", "1000"},
           {"request", "a", "--hold-for", "5m"},
           {"request", "a", "--wait", "--hold-for", "x"}}) {
    EXPECT_EQ(Parse(bad), 2) << ::testing::PrintToString(bad);
    EXPECT_EQ(out_.str(), "");
    EXPECT_THAT(ErrorLine(), StartsWith("nodepool"));
  }
}

// operations.md 1
TEST_F(ArgumentsTest, AUsageErrorNamesTheCommandAndWhatWasMeant) {
  struct Case {
    std::vector<std::string> words;
    std::string line;
  };
  for (const Case& wrong : std::vector<Case>{
           {{"list", "--sate", "ready"}, "nodepool list: there is no option --sate; did you mean --state?"},
           {{"list", "--jsno"}, "nodepool list: there is no option --jsno; did you mean --json?"},
           {{"list", "--jsno=x"}, "nodepool list: there is no option --jsno; did you mean --json?"},
           {{"-c", "/a", "list", "--debgu"},
            "nodepool list: there is no option --debgu; did you mean --debug?"},
           {{"--versoin"}, "nodepool: there is no option --versoin; did you mean --version?"},
           {{"list", "--bogus"}, "nodepool list: there is no option --bogus; see nodepool list --help"},
           {{"list", "-x"}, "nodepool list: there is no option -x; see nodepool list --help"},
           {{"list", "-x\x1b[2J"}, "nodepool list: there is no option -x\\x1b[2J; see nodepool list --help"},
           {{"--detail", "list"}, "nodepool: --detail belongs behind its command; see nodepool --help"},
           {{"request", "a", "--pr", "1"},
            "nodepool request: --pr may mean --priority or --provider; see nodepool request --help"},
           {{"list", "used"}, "nodepool list: not expected: used; see nodepool list --help"},
           {{"hold"},
            "nodepool hold: NODE, or --provider, --state or --label is required; see nodepool hold --help"},
           {{"lsit"}, "nodepool: there is no command lsit; did you mean list?"},
           {{"help", "lsit"}, "nodepool: there is no command lsit; did you mean list?"}}) {
    EXPECT_EQ(Parse(wrong.words), 2) << wrong.line;
    EXPECT_EQ(ErrorLine(), wrong.line);
    EXPECT_EQ(out_.str(), "");
  }
}

TEST_F(ArgumentsTest, HelpIsACommandToo) {
  for (std::vector<std::string> command :
       std::vector<std::vector<std::string>>{{}, {"hold"}, {"list"}, {"image-upload"}}) {
    std::vector<std::string> words = command;
    words.push_back("--help");
    EXPECT_EQ(Parse(words), 0);
    std::string help = out_.str();
    words = {"-c", "/a", "help"};
    words.insert(words.end(), command.begin(), command.end());
    EXPECT_EQ(Parse(words), 0);
    EXPECT_EQ(out_.str(), help);
  }
  EXPECT_EQ(WithoutHelpCommand({"help", "standalone"}), (std::vector<std::string>{"standalone", "--help"}));
  EXPECT_EQ(WithoutHelpCommand({"exec", "help", "--", "help"}),
            (std::vector<std::string>{"exec", "help", "--", "help"}));
}

// operations.16.1
TEST_F(ArgumentsTest, HelpAndVersionGoToStandardOutput) {
  EXPECT_EQ(Parse({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("request-list"));
  EXPECT_EQ(Parse({"request", "-h"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("--hold-for"));
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_THAT(out_.str(), StartsWith("Nodepool version: "));
}

// operations.5.1
TEST_F(ArgumentsTest, AnUnknownCommandIsAnsweredInOneLine) {
  EXPECT_EQ(Parse({"lst"}), 2);
  EXPECT_EQ(err_.str(), "nodepool: there is no command lst; did you mean list?\n");
  EXPECT_EQ(Parse({"-c", "/a", "bogus", "--detail"}), 2);
  EXPECT_EQ(err_.str(), "nodepool: there is no command bogus; see nodepool --help\n");
}

// operations.5.1
TEST_F(ArgumentsTest, ToolOptionsAreTakenBeforeAndAfterTheCommand) {
  EXPECT_EQ(Parse({"list", "-c", "/a", "--detail", "-s", "/b", "--deb"}), -1);
  EXPECT_EQ(invocation_.config_path, "/a");
  EXPECT_EQ(invocation_.secure_path, "/b");
  EXPECT_TRUE(invocation_.is_debug);
  EXPECT_EQ(Parse({"-c", "/a", "-s", "/b", "--debug", "list", "--detail"}), -1);
  EXPECT_EQ(invocation_.config_path, "/a");
  EXPECT_EQ(invocation_.secure_path, "/b");
  EXPECT_TRUE(invocation_.is_debug);
  EXPECT_TRUE(invocation_.command);
  EXPECT_EQ(Parse({"list"}), -1);
  EXPECT_EQ(invocation_.config_path, "/etc/nodepool/nodepool.yaml");
  EXPECT_FALSE(invocation_.secure_path);
}

// operations.5.1
TEST_F(ArgumentsTest, TheEnvironmentNamesTheConfigurationWhereNoOptionDoes) {
  ::setenv("NODEPOOL_CONFIG", "/from/environment", 1);
  EXPECT_EQ(Parse({"list"}), -1);
  EXPECT_EQ(invocation_.config_path, "/from/environment");
  EXPECT_EQ(Parse({"list", "-c", "/a"}), -1);
  EXPECT_EQ(invocation_.config_path, "/a");
  ::setenv("NODEPOOL_CONFIG", "", 1);
  EXPECT_EQ(Parse({"list"}), -1);
  EXPECT_EQ(invocation_.config_path, "/etc/nodepool/nodepool.yaml");
  ::unsetenv("NODEPOOL_CONFIG");
}

TEST_F(ArgumentsTest, AServerIsWaitedForAsLongAsAsked) {
  EXPECT_EQ(Parse({"list"}), -1);
  EXPECT_EQ(invocation_.server_wait, std::nullopt);
  EXPECT_EQ(Parse({"list", "--wait-for-server"}), -1);
  EXPECT_EQ(invocation_.server_wait, Duration::max());
  EXPECT_EQ(Parse({"hold", "--wait-for-server", "1"}), -1) << "1 is the node";
  EXPECT_EQ(invocation_.server_wait, Duration::max());
  EXPECT_EQ(Parse({"hold", "1", "--wait-for-server=5m"}), -1);
  EXPECT_EQ(invocation_.server_wait, std::chrono::minutes(5));
}

// operations.md 1: any unambiguous prefix of a long option.
TEST_F(ArgumentsTest, LongOptionsMayBeShortened) {
  EXPECT_EQ(Parse({"--deb", "list", "--det"}), -1);
  EXPECT_TRUE(invocation_.is_debug);
  EXPECT_EQ(Parse({"request", "a", "--wait", "--hold=5m", "--ten", "demo"}), -1);
  EXPECT_EQ(Parse({"request", "a", "--pr", "1"}), 2) << "--priority or --provider";
  EXPECT_EQ(Parse({"request", "a", "--prov", "--pri"}), -1) << "a value is no option";
}

// Every command that lists something takes the same options, where they apply to its list.
TEST_F(ArgumentsTest, ListingsTakeFiltersAndAreWatched) {
  for (const char* command :
       {"status", "list", "request-list", "label-list", "provider-list", "dib-image-list", "image-list",
        "image-status", "info", "alien-list", "alien-image-list"}) {
    std::vector<std::string> words = {command};
    if (words[0] == "info") words.push_back("cloud");
    auto with = [&](std::vector<std::string> more) {
      std::vector<std::string> all = words;
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    EXPECT_EQ(Parse(with({"--json", "--wide", "--color", "never"})), -1) << command;
    EXPECT_EQ(Parse(with({"--color=sometimes"})), 2) << command;
    bool is_watched = !words[0].starts_with("alien");
    EXPECT_EQ(Parse(with({"--watch"})), is_watched ? -1 : 2) << command;
  }
  EXPECT_EQ(Parse({"list", "--state", "ready", "--state=hold", "--label", "a", "--prov", "p", "--detail"}),
            -1);
  EXPECT_EQ(Parse({"list", "--watch", "2.5", "--state", "ready"}), -1);
  EXPECT_EQ(Parse({"list", "--watch=5s"}), -1);
  EXPECT_EQ(Parse({"list", "--watch", "--det"}), -1) << "the next option is no number of seconds";
  EXPECT_EQ(Parse({"list", "--output", "columns=ID,Public IPv4,state"}), -1);
  EXPECT_EQ(Parse({"request-list", "--detail", "--output=columns=waits"}), -1);
  EXPECT_EQ(Parse({"dib-image-list", "--state", "paused"}), -1);
  EXPECT_EQ(Parse({"alien-list", "--provider", "a", "--provider", "b"}), -1);
}

TEST_F(ArgumentsTest, HelpOffersWhatAListCanDoAndNothingElse) {
  std::map<std::string, std::vector<std::string>> offered = {
      {"status", {"--watch"}},
      {"list", {"--state", "--label", "--provider", "--watch", "--output"}},
      {"request-list", {"--state", "--label", "--watch", "--output"}},
      {"label-list", {"--label", "--watch", "--output"}},
      {"dib-image-list", {"--state", "--watch", "--output"}},
      {"image-list", {"--state", "--provider", "--watch", "--output"}},
      {"image-status", {"--watch", "--output"}},
      {"info", {"--watch"}},
      {"job-list", {"--watch", "--output"}},
      {"alien-list", {"--provider", "--output"}},
      {"alien-image-list", {"--provider", "--output"}}};
  for (const auto& [command, options] : offered) {
    EXPECT_EQ(Parse({command, "--help"}), 0);
    for (const char* option : {"--state", "--label", "--provider", "--watch", "--output"}) {
      bool is_offered = out_.str().find("  " + std::string(option) + " ") != std::string::npos;
      EXPECT_EQ(is_offered, std::ranges::find(options, option) != options.end()) << command << " " << option;
    }
  }
}

TEST_F(ArgumentsTest, WhatAListingDoesNotHaveIsRefused) {
  struct Refusal {
    std::vector<std::string> words;
    std::string message;
  };
  for (const Refusal& refusal : std::vector<Refusal>{
           {{"image-status", "--state", "ready"}, "--state"},
           {{"info", "p", "--provider", "p"}, "--provider"},
           {{"image-list", "--label", "a"}, "--label"},
           {{"request-list", "--state", "ready"},
            "--state: \"ready\" is no state; there is requested, pending, fulfilled, failed"},
           {{"list", "--state", "ready", "used"}, "used"},
           {{"list", "--state"}, "--state"},
           {{"list", "--watch", "0.2"}, "--watch: there is at least a second between two tables"},
           {{"list", "--watch", "soon"}, "--watch: \"soon\" is no duration"},
           {{"list", "--output", "json"}, "--output: it has the form columns=A,B"},
           {{"list", "--output", "columns="}, "--output: it names no column"},
           {{"list", "--output", "columns=id,tenant"},
            "--output: there is no column \"tenant\"; there is id, "},
           {{"info", "p", "--output", "columns=id"}, "--output"}}) {
    EXPECT_EQ(Parse(refusal.words), 2) << ::testing::PrintToString(refusal.words);
    EXPECT_THAT(ErrorLine(), HasSubstr(refusal.message));
  }
}

// operations.md 1, 5.1: any usage error is reported in one line, with status 2, and nothing is done.
TEST_F(ArgumentsTest, EveryCommandRefusesWhatItDoesNotKnow) {
  std::map<std::string, std::vector<std::string>> required = {
      {"status", {}},
      {"list", {}},
      {"request-list", {}},
      {"label-list", {}},
      {"dib-image-list", {}},
      {"image-list", {}},
      {"image-status", {}},
      {"info", {"p"}},
      {"alien-list", {}},
      {"alien-image-list", {}},
      {"delete", {"1"}},
      {"hold", {"1", "2"}},
      {"image-build", {"i"}},
      {"image-pause", {"i"}},
      {"image-unpause", {"i"}},
      {"image-update", {"p", "i"}},
      {"image-upload", {"i"}},
      {"dib-image-delete", {"i-1"}},
      {"image-delete", {"--provider", "p", "--image", "i", "--build-id", "b", "--upload-id", "u"}},
      {"export-image-data", {"f"}},
      {"import-image-data", {"f"}},
      {"migrate", {"to-ensemble"}},
      {"request", {"a"}},
      {"release", {}},
      {"config-validate", {}}};
  for (auto& [command, words] : required) {
    std::vector<std::string> line = {command};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(Parse(line), -1) << command;
    line.push_back("--nonesuch");
    EXPECT_EQ(Parse(line), 2) << command;
    EXPECT_THAT(ErrorLine(), HasSubstr("--nonesuch")) << command;
    EXPECT_EQ(out_.str(), "");
    EXPECT_EQ(Parse({command}), words.empty() ? -1 : 2) << command << " without what it needs";
    EXPECT_EQ(Parse({command, "--help"}), 0) << command;
  }
  for (const char* command :
       {"list", "request-list", "image-list", "info", "image-build", "migrate", "config-validate"}) {
    std::vector<std::string> line = {command};
    line.insert(line.end(), required[command].begin(), required[command].end());
    line.push_back("one-too-many");
    EXPECT_EQ(Parse(line), 2) << command;
    EXPECT_THAT(ErrorLine(), HasSubstr("one-too-many"));
  }
}

// operations.13.8: the four options of today, or the single argument of the first releases.
TEST_F(ArgumentsTest, WhatImageDeleteMeansIsSaidInOneOfTwoForms) {
  EXPECT_EQ(Parse({"image-delete", "42", "--force"}), -1);
  EXPECT_EQ(Parse({"image-delete", "--provider", "p", "--image", "i", "--build-id", "b"}), 2);
  EXPECT_EQ(Parse({"image-delete", "--upload-id", "1"}), 2);
  EXPECT_EQ(
      Parse({"image-delete", "42", "--provider", "p", "--image", "i", "--build-id", "b", "--upload-id", "u"}),
      2);
  EXPECT_EQ(Parse({"image-delete", "--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("made again"));
  EXPECT_THAT(out_.str(), HasSubstr("dib-image-delete"));
}

TEST_F(ArgumentsTest, TheCommandIsFoundBehindTheToolsOptions) {
  EXPECT_EQ(PlaceOfCommand({"standalone", "-c", "/a"}), 0U);
  EXPECT_EQ(PlaceOfCommand({"-c", "list", "--debug", "standalone", "-f"}), 3U);
  EXPECT_EQ(PlaceOfCommand({"--driv", "/d", "standalone"}), 2U);
  EXPECT_EQ(PlaceOfCommand({"--bogus", "standalone"}), 2U) << "nobody knows whose word it is";
  EXPECT_EQ(PlaceOfCommand({}), 0U);
}

TEST_F(ArgumentsTest, ValidationIsNoCommandOfTheTree) {
  EXPECT_EQ(Parse({"config-validate"}), -1);
  EXPECT_TRUE(invocation_.validation);
  EXPECT_FALSE(invocation_.command);
}

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(DurationsTest, AUnitMayFollowTheNumber) {
  EXPECT_EQ(*ParseDuration("90"), seconds(90));
  EXPECT_EQ(*ParseDuration("90s"), seconds(90));
  EXPECT_EQ(*ParseDuration("5m"), minutes(5));
  EXPECT_EQ(*ParseDuration("1.5h"), minutes(90));
  EXPECT_EQ(*ParseDuration("2d"), hours(48));
  EXPECT_EQ(*ParseDuration("0"), seconds(0));
}

TEST(DurationsTest, AnythingElseIsRefusedWithAnExample) {
  for (const char* text : {"", "s", "-5", "5w", "5 m", "inf", "nan", "1e300", "5mm", "five"}) {
    Expected<Duration> duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().verdict(), Verdict::kInvalid);
    EXPECT_NE(duration.error().message().find("1.5h"), std::string::npos) << duration.error().message();
  }
}

}  // namespace

}  // namespace nodepool::cli
