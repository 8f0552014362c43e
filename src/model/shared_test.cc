#include "model/shared.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "model/resources.h"

namespace nodepool {
namespace {

TEST(SharedTest, IsUsedLikeAnOptional) {
  SharedText none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none, std::nullopt);
  EXPECT_EQ(none.value_or("other"), "other");
  SharedText text = "east";
  EXPECT_TRUE(text.has_value());
  EXPECT_EQ(*text, "east");
  EXPECT_EQ(text->size(), 4u);
  EXPECT_EQ(text, std::optional<std::string>("east"));
  EXPECT_EQ(text.value_or("other"), "east");
  std::optional<std::string> copy = text;
  EXPECT_EQ(copy, "east");
  text = std::optional<std::string>();
  EXPECT_EQ(text, none);
  text = "";
  EXPECT_NE(text, none) << "an empty text is not none";
  text.reset();
  EXPECT_EQ(text, none);
}

TEST(SharedTest, EqualValuesAreOneInMemory) {
  SharedText first = std::string("a name that is longer than a short text");
  SharedText second = std::string("a name that is longer than a short text");
  EXPECT_EQ(&*first, &*second);
  second = "another name";
  EXPECT_EQ(*first, "a name that is longer than a short text");
  Shared<Resources> amounts = Resources{{"cores", 4}};
  EXPECT_EQ(&*amounts, &*Shared<Resources>(Resources{{"cores", 4}}));
  EXPECT_NE(amounts, Shared<Resources>(Resources{{"cores", 5}}));
  EXPECT_EQ(sizeof(SharedText), sizeof(void*));
}

TEST(SharedTest, AmountsThatAreNoNumbersAreFreed) {
  Resources amounts = {{"cores", std::numeric_limits<double>::quiet_NaN()}};
  Shared<Resources> first = amounts;
  Shared<Resources> second = amounts;
  EXPECT_EQ(first, second) << "thousands of them would make look-ups long";
  first.reset();
  EXPECT_EQ(second->size(), 1u);
  second.reset();
  EXPECT_EQ(second, std::nullopt);
}

TEST(SharedTest, ThreadsMayUseTheSameValues) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 2000; ++round) {
        SharedText text = std::to_string(round % 3);
        SharedText copy = text;
        text.reset();
        ASSERT_EQ(copy, std::to_string(round % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nodepool
