#include "base/text_hash.h"

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

}  // namespace
}  // namespace nodepool
