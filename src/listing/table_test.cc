#include "listing/table.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

void AddRow(Table& table, std::initializer_list<const char*> texts) {
  table.AddRow();
  for (const char* text : texts) table.AddCell(text);
}

// operations.5.3, the example.
TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"ID", "State"});
  AddRow(table, {"0000000007", "ready"});
  AddRow(table, {"0000000011", "deleting"});
  EXPECT_EQ(table.ToString(),
            "+------------+----------+\n"
            "| ID         | State    |\n"
            "+------------+----------+\n"
            "| 0000000007 | ready    |\n"
            "| 0000000011 | deleting |\n"
            "+------------+----------+");
}

TEST(TableTest, AnEmptyOneIsRuleHeaderRuleRule) {
  EXPECT_EQ(Table({"ID", "State"}).ToString(),
            "+----+-------+\n"
            "| ID | State |\n"
            "+----+-------+\n"
            "+----+-------+");
}

TEST(TableTest, WithoutColumnsThereIsNothing) {
  Table table({});
  AddRow(table, {});
  EXPECT_EQ(table.ToString(), "");
}

TEST(TableTest, LineBreaksMakeARowTaller) {
  Table table({"ID", "Comment", "End"});
  AddRow(table, {"1", "first\nsecond line", "x\n"});
  EXPECT_EQ(table.ToString(),
            "+----+-------------+-----+\n"
            "| ID | Comment     | End |\n"
            "+----+-------------+-----+\n"
            "| 1  | first       | x   |\n"
            "|    | second line |     |\n"
            "+----+-------------+-----+");
}

TEST(TableTest, AFrameOfBlanksHasNoRulesAndNoBlanksAtTheEnd) {
  Table table({"ID", "Comment", "End"}, Frame::kBlanks);
  AddRow(table, {"1", "first\nsecond line", ""});
  EXPECT_EQ(table.ToString(),
            "ID  Comment      End\n"
            "1   first\n"
            "    second line");
}

TEST(TableTest, TheWidthOfALine) {
  EXPECT_EQ(LineWidth(Frame::kBars, 10, 2), std::string_view("| 12345 | 67890 |").size());
  EXPECT_EQ(LineWidth(Frame::kBlanks, 10, 2), std::string_view("12345  67890").size());
}

TEST(TableTest, WideCharactersCountTwoAndCombiningOnesNone) {
  Table table({"A", "B"});
  AddRow(table, {"日本", "e\u0301"});
  AddRow(table, {"x", "y"});
  EXPECT_EQ(table.ToString(),
            "+------+---+\n"
            "| A    | B |\n"
            "+------+---+\n"
            "| 日本 | e\u0301 |\n"
            "| x    | y |\n"
            "+------+---+");
}

}  // namespace
}  // namespace nodepool::listing
