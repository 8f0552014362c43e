#include "main/reference/pages.h"

#include <gmock/gmock.h>

#include <sstream>

#include "main/builtin_drivers.h"

namespace nodepool::reference {

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ReferencePagesTest : public ::testing::Test {
 protected:
  void SetUp() override { AddBuiltinDrivers(drivers_); }

  // The rows of the page's tables, without heads and the lines below these.
  static std::vector<std::string> Rows(const std::string& page) {
    std::vector<std::string> rows;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("| `")) rows.push_back(line);
    }
    return rows;
  }

  driver::Registry drivers_;
};

TEST_F(ReferencePagesTest, EverySettingMetricParameterAndFieldIsDescribed) {
  for (const Page& page : AllPages(drivers_)) {
    std::vector<std::string> rows = Rows(page.text);
    EXPECT_GT(rows.size(), 10u) << page.path;
    for (const std::string& row : rows) EXPECT_THAT(row, Not(EndsWith("|  |"))) << page.path;
  }
}

TEST_F(ReferencePagesTest, EveryRouteIsDescribed) {
  std::istringstream lines(ApiPage(drivers_));
  int count = 0;
  for (std::string line, blank, summary; std::getline(lines, line);) {
    if (!line.starts_with("## ")) continue;
    std::getline(lines, blank);
    std::getline(lines, summary);
    EXPECT_THAT(summary, Not(IsEmpty())) << line;
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST_F(ReferencePagesTest, EveryDriverHasItsSection) {
  std::string page = ConfigurationPage(drivers_);
  for (const std::string& name : drivers_.Names())
    EXPECT_THAT(page, HasSubstr("## Provider section, driver " + name + "\n"));
  EXPECT_THAT(page, HasSubstr("## Provider section, driver libvirt\n")) << "it is a shared object";
}

}  // namespace

}  // namespace nodepool::reference
