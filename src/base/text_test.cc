#include "base/text.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

TEST(TextTest, NearestSpellingFindsTyposOnly) {
  std::vector<std::string> keys = {"min-ready", "max-ready-age", "name"};
  EXPECT_EQ(NearestSpelling("min-redy", keys), "min-ready");
  EXPECT_EQ(NearestSpelling("min_ready", keys), "min-ready");
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

TEST(TextTest, ExcerptIsBoundedAndPrintable) {
  EXPECT_EQ(Excerpt("a\nb"), "a\\x0ab");
  EXPECT_EQ(Excerpt("\xff"), "\\xff");
  EXPECT_EQ(Excerpt("abcdef", 3), "abc...");
  EXPECT_TRUE(IsValidUtf8(Excerpt("aä", 2)));
}

}  // namespace
}  // namespace nodepool
