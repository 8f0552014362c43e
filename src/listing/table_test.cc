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

TEST(TableTest, ALongCellIsCut) {
  Table table({"a"});
  table.AddRow();
  table.AddCell("x" + std::string(900'000, 'y'));
  table.AddRow();
  table.AddCell(std::string(511, 'z') + "\u00e4");  // the character does not fit
  std::string text = table.ToString();
  EXPECT_EQ(text.find('\n'), 517u) << "as wide as 512 characters, the mark and the frame";
  EXPECT_NE(text.find("x" + std::string(511, 'y') + "\u2026 |"), text.npos);
  EXPECT_NE(text.find(std::string(511, 'z') + "\u2026  |"), text.npos);
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

// operations.16.29
TEST(TableLinesTest, RowsAreNotKept) {
  TableLines lines({"ID", "Comment"}, Frame::kBars);
  std::vector<ShownCell> first{{"1"}, {"two\nlines"}}, second{{"12345", "\x1b[31m"}, {""}};
  lines.Measure(first);
  lines.Measure(second);
  std::string text;
  lines.AppendHead(text);
  lines.AppendRow(text, first);
  lines.AppendRow(text, second);
  lines.AppendEnd(text);
  EXPECT_EQ(text,
            "+-------+---------+\n"
            "| ID    | Comment |\n"
            "+-------+---------+\n"
            "| 1     | two     |\n"
            "|       | lines   |\n"
            "| \x1b[31m12345\x1b[0m |         |\n"
            "+-------+---------+");
}

// operations.16.29
TEST(TableLinesTest, ARowThatHasGrownShiftsItsLine) {
  TableLines lines({"ID", "State"}, Frame::kBars);
  std::string text;
  lines.AppendRow(text, std::vector<ShownCell>{{"123"}, {"ready"}});
  EXPECT_EQ(text, "| 123 | ready |\n");
}

TEST(TableLinesTest, OnlyTheBeginningOfALongTextIsMeasuredAndShown) {
  TableLines lines({"ID"}, Frame::kBars);
  std::string text, long_text(100'000, 'x');
  std::vector<ShownCell> row{{long_text}};
  lines.Measure(row);
  lines.AppendRow(text, row);
  EXPECT_EQ(text, "| " + std::string(512, 'x') + "\u2026 |\n");
}

TEST(TableLinesTest, WithoutColumnsThereIsNothing) {
  TableLines lines({}, Frame::kBars);
  std::string text;
  lines.AppendHead(text);
  lines.AppendRow(text, {});
  lines.AppendEnd(text);
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace nodepool::listing
