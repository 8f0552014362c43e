#include "listing/listing.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "listing/record_listing.h"

namespace nodepool::listing {

namespace {

namespace json = boost::json;

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

std::string CellText(const Cell& cell) {
  std::string text;
  AppendText(text, cell);
  return text;
}

// operations.5.3, D-60.
TEST(ListingTest, CellsOfEveryKind) {
  EXPECT_EQ(CellText(nullptr), "");
  EXPECT_EQ(CellText("text"), "text");
  EXPECT_EQ(CellText(true), "True");
  EXPECT_EQ(CellText(false), "False");
  EXPECT_EQ(CellText(-17), "-17");
  EXPECT_EQ(CellText(json::array{"a", "b", 3}), "a,b,3");
  EXPECT_EQ(CellText(json::object{{"a", 1}}), R"({"a":1})");
}

TEST(ListingTest, JsonShowsTimesAndAges) {
  Listing listing{
      {{"made", "Made", Kind::kTime},
       {.key = "age", .title = "Age", .kind = Kind::kAge, .since = "state_since"},
       {.key = "request_age", .title = "Request Age", .kind = Kind::kTime, .since = "request_since"}},
      {{999'999'940, 999'999'940.5, nullptr}}};
  EXPECT_EQ(
      ToJson(listing, FromSeconds(1'000'000'000)),
      R"([{"made":999999940,"age":59,"state_since":999999940,"request_age":null,"request_since":null}])");
  std::string python;  // operations.md 6.3
  AppendJson(python, listing, FromSeconds(1'000'000'000), JsonStyle::kPython);
  EXPECT_EQ(python, R"([{"made": 999999940, "age": "00:00:00:59", "request_age": null}])");
}

TEST(ListingTest, StatesHaveColorsWhereTheyAreWanted) {
  Listing listing{{{"id", "ID"}, {"state", "State", Kind::kState}}, {{"ready", "ready"}, {"1", "unheard"}}};
  EXPECT_EQ(ToTable(listing, WallTime(), Colors::kStates),
            "+-------+---------+\n"
            "| ID    | State   |\n"
            "+-------+---------+\n"
            "| ready | \x1b[32mready\x1b[0m   |\n"
            "| 1     | unheard |\n"
            "+-------+---------+");
  EXPECT_EQ(ToTable(listing, WallTime()).find('\x1b'), std::string::npos);
}

TEST(ListingTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(CellText("\x1b[31mred\nnext"), "\\x1b[31mred\nnext");
}

TEST(ListingTest, TablesShowHowLongAgoATimeIs) {
  Listing listing{{{"build_request_age", "Age", Kind::kTime}, {"age", "Age", Kind::kAge}, {"page", "Page"}},
                  {{999'999'940, nullptr, 60}}};
  EXPECT_EQ(ToTable(listing, FromSeconds(1'000'000'000)),
            "+-------------+-----+------+\n"
            "| Age         | Age | Page |\n"
            "+-------------+-----+------+\n"
            "| 00:00:01:00 |     | 60   |\n"
            "+-------------+-----+------+");
}

store::StoredNode ExampleNode() {
  store::StoredNode node;
  node.id = NodeId("0000000107");
  Node& record = node.record;
  record.SetState(NodeState::kInUse, FromSeconds(1'000'000'000));
  record.provider = ProviderName("cloud-a");
  record.pool = PoolName("main");
  record.type = {LabelName("small"), LabelName("tiny")};
  record.external_id = "i-17";
  record.public_ipv4 = "203.0.113.7";
  record.allocated_to = RequestId("200-0000004711");
  record.user_data = json::object{{"zuul_system", "x"}};
  node.contenders = {"2ab9e030e24c4bec92ed079e7afbb748__lock__0000000003"};
  return node;
}

// operations.5.4, 16.11: the order of columns is an interface.
TEST(NodeListingTest, BriefTable) {
  WallTime now = FromSeconds(1'000'000'061);
  store::StoredNode node = ExampleNode();
  EXPECT_EQ(ToTable(ListNodes({&node}, NodeColumns::kBrief), now),
            "+------------+----------+------------+-----------+-------------+------+--------+-------------+--"
            "------+\n"
            "| ID         | Provider | Label      | Server ID | Public IPv4 | IPv6 | State  | Age         | "
            "Locked |\n"
            "+------------+----------+------------+-----------+-------------+------+--------+-------------+--"
            "------+\n"
            "| 0000000107 | cloud-a  | small,tiny | i-17      | 203.0.113.7 |      | in-use | 00:00:01:01 | "
            "locked |\n"
            "+------------+----------+------------+-----------+-------------+------+--------+-------------+--"
            "------+");
}

TEST(NodeListingTest, DetailHasTwentyOneColumns) {
  store::StoredNode node = ExampleNode();
  Listing listing = ListNodes({&node}, NodeColumns::kDetail);
  std::vector<std::string> titles;
  for (const Column& column : listing.columns) titles.push_back(column.title);
  EXPECT_EQ(
      Join(titles, "|"),
      "ID|Provider|Label|Server ID|Public IPv4|IPv6|State|Age|Locked|Pool|Hostname|Private IPv4|AZ|Username|"
      "Port|Launcher|Allocated To|Hold Job|Comment|User Data|Driver Data");
  EXPECT_EQ(
      ToJson(listing, FromSeconds(1'000'000'061)),
      R"([{"id":"0000000107","provider":"cloud-a","label":["small","tiny"],"server_id":"i-17",)"
      R"("public_ipv4":"203.0.113.7","ipv6":null,"state":"in-use","age":61,"state_since":1000000000,"locked":"locked",)"
      R"("pool":"main","hostname":null,"private_ipv4":null,"AZ":null,"username":"zuul",)"
      R"("connection_port":22,"launcher":null,"allocated_to":"200-0000004711","hold_job":null,)"
      R"("comment":null,"user_data":{"zuul_system":"x"},"driver_data":null}])");
}

// Every JSON reader accepts the output, and tables show numbers as they were written.
TEST(NodeListingTest, DataOfClientsIsShownAsItIsWritten) {
  store::StoredNode node = ExampleNode();
  node.record.user_data = RawJson::OfText(R"({"trace": 214933908099603316458134831733103562640, "x": NaN})");
  node.record.driver_data = RawJson::OfText(R"([1.50, "\udc80", true])");
  Listing listing = ListNodes({&node}, NodeColumns::kDetail);
  std::string json = ToJson(listing, FromSeconds(1'000'000'061));
  std::string tail =
      "\"user_data\":{\"trace\":214933908099603316458134831733103562640,\"x\":null},"
      "\"driver_data\":[1.50,\"\xef\xbf\xbd\",true]}]";
  EXPECT_TRUE(json.ends_with(tail)) << json;
  std::string table = ToTable(listing, FromSeconds(1'000'000'061));
  EXPECT_NE(table.find(R"(| {"trace":214933908099603316458134831733103562640,"x":null} | 1.50,)"), table.npos)
      << table;
  EXPECT_NE(table.find("\xef\xbf\xbd,True"), table.npos) << table;
}

// operations.16.4: connection data of other kinds may hold credentials.
TEST(NodeListingTest, OnlyPortNumbersAreShown) {
  Node node;
  node.connection_port = json::object{{"token", "secret"}};
  EXPECT_EQ(ShownPort(node), "redacted");
  node.connection_port = nullptr;
  EXPECT_EQ(ShownPort(node), "redacted");
  node.connection_port = "token-22";
  EXPECT_EQ(ShownPort(node), "redacted");
  node.connection_port = "8022";
  EXPECT_EQ(ShownPort(node), "8022");
  node.connection_port = 8022;
  EXPECT_EQ(ShownPort(node), 8022);
}

}  // namespace

}  // namespace nodepool::listing
