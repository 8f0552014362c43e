#include "base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace nodepool {

namespace {

TEST(TextHashTest, EqualTextsHaveEqualHashes) {
  EXPECT_EQ(HashText("nodes/0000000001"), HashText(std::string("nodes/0000000001")));
  EXPECT_NE(HashText("nodes/0000000001"), HashText("nodes/0000000002"));
  EXPECT_NE(HashText(""), HashText(std::string(1, '\0')));
}

// Two texts of one std::hash, by its fixed seed.
TEST(TextHashTest, TextsMadeForTheUsualHashDoNotCollide) {
  const std::string one = "Uc[nB[GCN%i30gb]";
  const std::string other = "w!gz.D7>xTdMUFo[";
  EXPECT_EQ(std::hash<std::string>()(one), std::hash<std::string>()(other));
  EXPECT_NE(HashText(one), HashText(other));
}

TEST(TextHashTest, TablesFindTextsWithoutCopies) {
  TextMap<int> ages = {{"a", 1}};
  TextSet names = {"a"};
  EXPECT_EQ(ages.find(std::string_view("a"))->second, 1);
  EXPECT_TRUE(names.contains(std::string_view("a")));
  EXPECT_FALSE(names.contains(std::string_view("b")));
}

TEST(TextTest, NearestSpellingFindsTyposOnly) {
  std::vector<std::string> keys = {"min-ready", "max-ready-age", "name"};
  EXPECT_EQ(NearestSpelling("min-redy", keys), "min-ready");
  EXPECT_EQ(NearestSpelling("min_ready", keys), "min-ready");
  EXPECT_EQ(NearestSpelling("naem", keys), "name") << "two letters that are swapped count as one";
  EXPECT_EQ(NearestSpelling("anem", keys), std::nullopt);
  EXPECT_EQ(NearestSpelling("zookeeper", keys), std::nullopt);
  EXPECT_EQ(NearestSpelling(std::string(100'000, 'a'), keys), std::nullopt);
}

TEST(TextTest, TrimTakesBlanksFromTheEndsOnly) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
  EXPECT_EQ(Trim("\n a\n", "\n"), " a");
}

TEST(TextTest, CaseIsOfAsciiOnly) {
  EXPECT_EQ(Lower("ABc-Z1\xc3\x84"), "abc-z1\xc3\x84");
  EXPECT_EQ(Upper("abC-z1\xc3\xa4"), "ABC-Z1\xc3\xa4");
}

TEST(TextTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a//b", '/'), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(Split("", '/').empty());
}

TEST(TextTest, Utf8) {
  EXPECT_TRUE(IsValidUtf8("grüße €𝄞"));
  EXPECT_FALSE(IsValidUtf8("\xff"));
  EXPECT_FALSE(IsValidUtf8("\xc0\xaf"));      // overlong
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80"));  // surrogate
  EXPECT_FALSE(IsValidUtf8("\xe2\x82"));      // cut short
}

TEST(TextTest, VisibleTextCannotBeObeyed) {
  EXPECT_EQ(Visible("grüße €𝄞"), "grüße €𝄞");
  EXPECT_EQ(Visible("a\x1b[31m\x7f"), "a\\x1b[31m\\x7f");
  EXPECT_EQ(Visible("\xc2\x85 \xc2\xa0"), "\\u0085 \xc2\xa0");
  EXPECT_EQ(Visible("\xe2\x80\xae\xe2\x81\xa9\xe2\x80\xa8"), "\\u202e\\u2069\\u2028");
  EXPECT_EQ(Visible("\xe2\x82 x\xff"), "\\xe2\\x82 x\\xff");
  EXPECT_EQ(Visible("a\n\tb\r", "\n\t"), "a\n\tb\\x0d");
}

TEST(TextTest, ExcerptIsBoundedAndPrintable) {
  EXPECT_EQ(Excerpt("a\nb"), "a\\x0ab");
  EXPECT_EQ(Excerpt("\xff"), "\\xff");
  EXPECT_EQ(Excerpt("abcdef", 3), "abc...");
  EXPECT_EQ(Excerpt("aä", 2), "a...");
  EXPECT_EQ(Excerpt("abc", 3), "abc");
}

TEST(EncodingTest, Base64OfRfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(EncodingTest, Base64SurvivesARoundTrip) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    EXPECT_EQ(FromBase64(Base64(bytes)), bytes);
  }
}

TEST(EncodingTest, WhatIsNotBase64IsRefused) {
  for (const char* text : {"Zg", "Zg=", "====", "Z===", "Zm9v!mFy", "Zm9v\nYm"}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
}

TEST(EncodingTest, HexHasTwoDigitsPerByte) { EXPECT_EQ(Hex(std::string_view("\x00\x0f\xff", 3)), "000fff"); }

}  // namespace

}  // namespace nodepool
