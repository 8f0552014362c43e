#include "base/log/logging.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "base/error.h"
#include "base/log/log_setup.h"

namespace nodepool::log {

namespace {

using std::chrono::milliseconds;

TEST(LoggingTest, AnnotationsComeInOrderAndOnlyWhenKnown) {
  EXPECT_EQ(Annotated({Level::kInfo, "x", {"e1", "200-1", "7"}, "text"}),
            "[e: e1] [node_request: 200-1] [node: 7] text");
  EXPECT_EQ(Annotated({Level::kInfo, "x", {"", "200-1", ""}, "text"}), "[node_request: 200-1] text");
}

TEST(LoggingTest, TextOfOthersIsSeenNotObeyed) {
  Capture capture;
  Logger logger = Logger("test.shown").About({"e\x1b[2J", "", ""});
  logger.Info("label {}", "\x1b]0;title\a\r\x7f\xc2\x9b\xe2\x80\xae\xff\tbuntu\nsecond line");
  EXPECT_EQ(capture.Count("[e: e\\x1b[2J] label \\x1b]0;title\\x07\\x0d\\x7f\\u009b\\u202e\\xff\tbuntu\n"
                          "second line"),
            1);
}

TEST(LoggingTest, LongLinesAreCut) {
  Capture capture;
  Logger("test.long").Info("{}\n{}", std::string(800'000, 'x'), "the end");
  EXPECT_EQ(capture.Count(std::string(16 << 10, 'x') + "...\nthe end"), 1);
  EXPECT_EQ(capture.Count(std::string((16 << 10) + 1, 'x')), 0);
}

TEST(LoggingTest, LongestPrefixDecidesTheLevel) {
  Logger chatty("test.prefix.cache.event");
  Logger quiet("test.prefix.cache");
  SetLevel("test.prefix", Level::kDebug);
  SetLevel("test.prefix.cache", Level::kWarning);
  EXPECT_FALSE(chatty.Enabled(Level::kInfo));
  SetLevel("test.prefix.cache.event", Level::kDebug);
  EXPECT_TRUE(chatty.Enabled(Level::kDebug));
  EXPECT_FALSE(quiet.Enabled(Level::kInfo));
}

TEST(LoggingTest, PrefixMatchesWholeWordsOnly) {
  SetLevel("test.word", Level::kError);
  EXPECT_TRUE(Logger("test.wordy").Enabled(Level::kInfo));
}

TEST(LoggingTest, CaptureCounts) {
  Capture capture;
  Logger logger = Logger("test.capture").About({"", "200-9", ""});
  logger.Info("made {} nodes", 3);
  EXPECT_EQ(capture.Count("[node_request: 200-9] made 3 nodes"), 1);
}

TEST(LoggingTest, LineFormatRepeatsThePrefixForEachLine) {
  char path[] = "/tmp/nodepool-log-XXXXXX";
  int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  ToFile(path);
  Logger("test.lines").Error("Exception in main loop:\ntrace");
  ToStderr();
  std::ifstream file(path);
  std::string first, second;
  std::getline(file, first);
  std::getline(file, second);
  unlink(path);
  std::string stamp = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR test\.lines: )";
  EXPECT_TRUE(std::regex_match(first, std::regex(stamp + "Exception in main loop:"))) << first;
  EXPECT_TRUE(std::regex_match(second, std::regex(stamp + "  trace"))) << second;
}

TEST(LoggingTest, UnwritableFileIsAClearError) { EXPECT_THROW(ToFile("/dev/null/x.log"), nodepool::Error); }

const LogTime kTime = LogTime(milliseconds(1'772'368'496'007));

std::string Formatted(std::string_view format, const Record& record, bool is_multi_line = false,
                      std::string date_format = "") {
  Expected<LineFormat> parsed = LineFormat::Parse(format, std::move(date_format), is_multi_line);
  return parsed ? parsed->Format(record, kTime) : parsed.error().message();
}

// configuration.md 14
TEST(LineFormatTest, FieldsAsPythonHasThem) {
  Record record{Level::kWarning, "nodepool.zk", {"e1", "", "7"}, "text"};
  EXPECT_EQ(Formatted("%(levelname)s %(name)s: %(message)s", record),
            "WARNING nodepool.zk: [e: e1] [node: 7] text");
  EXPECT_EQ(Formatted("%(levelname)-9s|%(levelname)9s|%(msecs)03d|%(levelno)d|100%%", record),
            "WARNING  |  WARNING|007|30|100%");
  EXPECT_EQ(Formatted("%(created)f %(created).2f", record), "1772368496.007000 1772368496.01");
  EXPECT_EQ(Formatted("%(asctime)s", record, false, "%Y"), "2026");
  EXPECT_EQ(Formatted("[%(module)s:%(lineno)d]", record), "[:]");
}

TEST(LineFormatTest, ForPeopleThereIsTheMessageAndHowBadItIs) {
  LineFormat format = LineFormat::ForPeople();
  EXPECT_EQ(format.Format({Level::kInfo, "x", {}, "all is good"}, kTime), "all is good");
  EXPECT_EQ(format.Format({Level::kWarning, "x", {}, "no cloud"}, kTime), "warning: no cloud");
  EXPECT_EQ(format.Format({Level::kError, "x", {}, "line 1\nline 2"}, kTime), "error: line 1\nline 2");
}

TEST(LineFormatTest, FaultsAreReported) {
  Record record{Level::kInfo, "x", {}, "text"};
  EXPECT_EQ(Formatted("%(nonsense)s", record), "\"nonsense\" is not a field of a log line");
  for (const char* wrong : {"%(name", "%(name)", "%s", "%(name)q", "50%"}) {
    EXPECT_NE(Formatted(wrong, record).find("expected %(name)s"), std::string::npos) << wrong;
  }
}

// operations.md 8.1
TEST(LineFormatTest, EachLineOfARecordMayGetThePrefix) {
  Record record{Level::kError, "x", {}, "one\ntwo\n\nfour"};
  EXPECT_EQ(Formatted("%(name)s: %(message)s", record, true), "x: one\nx:   two\nx:   \nx:   four");
  EXPECT_EQ(Formatted("%(name)s: %(message)s", record, false), "x: one\ntwo\n\nfour");
  record.text = "";
  EXPECT_EQ(Formatted("%(name)s: %(message)s", record, true), "x: ");
}

TEST(LineFormatTest, Json) {
  Record record{Level::kInfo, "x", {"e1", "200-1", ""}, "a \"b\"\nc"};
  EXPECT_EQ(LineFormat::Json().Format(record, kTime),
            R"({"time":1.772368496007E9,"level":"INFO","logger":"x","event":"e1","node_request":"200-1",)"
            R"("message":"a \"b\"\nc"})");
}

}  // namespace

}  // namespace nodepool::log
