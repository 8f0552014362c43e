#include "model/json_scanner.h"

#include <gtest/gtest.h>

#include "model/json.h"
#include "model/raw_json.h"

namespace nodepool {

namespace {

bool IsTaken(std::string_view text) {
  JsonScanner in(text);
  return in.Value() && in.End();
}

std::string Shown(std::string_view text) {
  std::string out;
  AppendValidJson(out, text, JsonStyle::kCompact);
  return out;
}

TEST(JsonScannerTest, AcceptsWhatPythonAccepts) {
  for (std::string_view text : {"null",
                                "true",
                                "false",
                                "0",
                                "-0",
                                "1.5",
                                "1e400",
                                "-1E-7",
                                "214933908099603316458134831733103562640",
                                "NaN",
                                "Infinity",
                                "-Infinity",
                                "\"\"",
                                R"("\udc80\ud83d\ude00\/\u00E9")",
                                "\"\xc3\xa9\x7f\"",
                                "[]",
                                "{}",
                                " [1 , {\"a\":\t[ ]}\r\n] ",
                                R"({"a": 1, "a": 2})",
                                "\"\xf4\x8f\xbf\xbf\xee\x80\x80\""}) {
    EXPECT_TRUE(IsTaken(text)) << text;
  }
}

TEST(JsonScannerTest, RefusesEverythingElse) {
  for (std::string_view text : {"",
                                " ",
                                "nul",
                                "True",
                                "01",
                                "1.",
                                ".5",
                                "+1",
                                "-",
                                "--1",
                                "1e",
                                "1e+",
                                "-NaN",
                                "nan",
                                "inf",
                                "'a'",
                                "\"",
                                "\"\\\"",
                                "\"\\x\"",
                                "\"\\u12g4\"",
                                "\"\\u123\"",
                                "\"\n\"",
                                "\"\xff\"",
                                "\"\xc0\x80\"",
                                "\"\xed\xa0\x80\"",
                                "\"\xf4\x90\x80\x80\"",
                                "\"\xe2\x82\"",
                                "[",
                                "[1",
                                "[1,",
                                "[1,]",
                                "[,]",
                                "{",
                                "{\"a\"",
                                "{\"a\":",
                                "{\"a\":1",
                                "{\"a\":1,}",
                                "{1:2}",
                                "{\"a\" 1}",
                                "[}",
                                "1 2",
                                "\xef\xbb\xbf{}"}) {
    EXPECT_FALSE(IsTaken(text)) << text;
  }
  EXPECT_FALSE(IsTaken(std::string_view("1\0", 2)));
}

TEST(JsonScannerTest, NestingIsBounded) {
  auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(IsTaken(nested(100)));
  EXPECT_FALSE(IsTaken(nested(101)));
  EXPECT_FALSE(IsTaken(std::string(kMaxRecordBytes, '[')));
  EXPECT_TRUE(IsTaken("[" + nested(99) + "," + nested(99) + "]")) << "siblings do not count";
}

TEST(JsonScannerTest, ErrorsSayWhereAndWhat) {
  JsonScanner in("{\"secret\": hunter2}");
  EXPECT_FALSE(in.Value());
  EXPECT_EQ(in.error().message(), "not valid JSON at byte 11: a value is expected");
}

TEST(JsonScannerTest, TextsOfAnyLengthAreScanned) {
  for (std::size_t length = 0; length < 40; ++length) {
    for (std::string_view odd : {"", "\xc3\xa9", "\\\"", "\\u00e9", "\x7f"}) {
      std::string text =
          '"' + std::string(length, 'x') + std::string(odd) + std::string(length % 7, 'y') + '"';
      std::string list = "[" + text + "," + text + "]";
      JsonScanner in(list);
      bool is_good = in.Elements([&] {
        std::string_view written;
        return in.Value(written) && written == text;
      });
      EXPECT_TRUE(is_good && in.End()) << list;
    }
  }
}

// Records are shown in lists and on the web as JSON that every reader accepts.
TEST(ValidJsonTest, IsWhatEveryReaderAccepts) {
  EXPECT_EQ(Shown(R"({ "n": [NaN, -Infinity, Infinity, 1e400, 214933908099603316458134831733103562640] })"),
            R"({"n":[null,null,null,1e400,214933908099603316458134831733103562640]})");
  EXPECT_EQ(Shown(R"("NaN \udc80 caf\u00e9 \ud83d\ude00 \\ \" \n")"),
            "\"NaN \xef\xbf\xbd caf\xc3\xa9 \xf0\x9f\x98\x80 \\\\ \\\" \\n\"");
  EXPECT_EQ(Shown(R"({"\ud800": 1, "a": {}, "a": []})"), "{\"\xef\xbf\xbd\":1,\"a\":{},\"a\":[]}");
}

TEST(RawJsonTest, IsStoredToTheByte) {
  for (std::string_view text : {"-0", "1.50", R"({"b":1,"a" : "\u0041"})", "NaN"}) {
    EXPECT_EQ(RawJson::OfText(text).text(), text);
  }
  EXPECT_TRUE(RawJson::OfText("null").is_null());
  EXPECT_EQ(RawJson().text(), "null");
}

TEST(RawJsonTest, IsComparedByItsValue) {
  EXPECT_EQ(RawJson::OfText(R"({"a":1,"b":"\u0041"})"), (boost::json::object{{"b", "A"}, {"a", 1}}));
  EXPECT_FALSE(RawJson(1) == RawJson("1"));
  EXPECT_EQ(RawJson(nullptr), RawJson());
}

TEST(RawJsonTest, KnowsIntegers) {
  EXPECT_EQ(RawJson(22).integer(), 22);
  for (std::string_view text : {"22.0", "\"22\"", "null", "{}", "214933908099603316458134831733103562640"}) {
    EXPECT_EQ(RawJson::OfText(text).integer(), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace nodepool
