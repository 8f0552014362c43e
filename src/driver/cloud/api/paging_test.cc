#include "driver/cloud/api/paging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud::api {
namespace {

using ::testing::ElementsAre;

Task<Page<int>> NumbersFrom(std::string next) {
  int first = next.empty() ? 0 : std::stoi(next);
  Page<int> page;
  page.items = {first, first + 1};
  if (first < 4) page.next = std::to_string(first + 2);
  co_return page;
}

Task<Page<int>> Circle(std::string next) {
  Page<int> page;
  page.next = next == "a" ? "b" : "a";
  co_return page;
}

TEST(ReadPages, ReadsUntilTheLastPage) {
  testing::VirtualTime time;
  EXPECT_THAT(time.Run(ReadPages<int>("numbers", &NumbersFrom)), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ReadPages, ACycleIsDetected) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &Circle));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "Endless pagination loop in the list of numbers");
  }
}

Task<Page<int>> Endless(std::string next) {
  Page<int> page;
  page.items = {1};
  page.next = std::to_string(next.empty() ? 1 : std::stoi(next) + 1);
  co_return page;
}

TEST(ReadPages, AListThatDoesNotEndIsAFault) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &Endless));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "the list of numbers does not end: 10000 pages with 10000 entries, 0 MiB");
  }
}

Task<Page<int>> EndlessOfLargePages(std::string next) {
  Page<int> page = co_await Endless(std::move(next));
  page.bytes = 50 << 20;
  co_return page;
}

TEST(ReadPages, AListOfTooManyBytesIsAFault) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &EndlessOfLargePages));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "the list of numbers does not end: 3 pages with 3 entries, 150 MiB");
  }
}

TEST(NextLink, IsFoundInTheHeader) {
  EXPECT_EQ(NextLink({{"link", "<http://x/a?m=1>; rel=\"prev\", <http://x/a?m=3>; rel=\"next\""}}),
            "http://x/a?m=3");
  EXPECT_EQ(NextLink({{"link", "</a?m=3>; rel=next"}}), "/a?m=3");
  EXPECT_EQ(NextLink({{"link", "rel=\"next\""}, {"other", "</a>; rel=next"}}), "");
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
