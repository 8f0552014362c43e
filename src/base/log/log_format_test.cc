#include "base/log/log_format.h"

#include <gtest/gtest.h>

#include "base/log/logging.h"

namespace nodepool::log {
namespace {

using std::chrono::milliseconds;

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
