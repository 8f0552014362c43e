#include "base/log/logging.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <regex>

#include "base/error.h"

namespace nodepool::log {
namespace {

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

}  // namespace
}  // namespace nodepool::log
