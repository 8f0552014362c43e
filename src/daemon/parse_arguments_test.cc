#include "daemon/parse_arguments.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace nodepool::daemon {

namespace {

class HomeTest : public ::testing::Test {
 protected:
  HomeTest() { ::setenv("HOME", "/home/zuul", 1); }
  ~HomeTest() override { former_.empty() ? ::unsetenv("HOME") : ::setenv("HOME", former_.c_str(), 1); }

 private:
  std::string former_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
};

TEST_F(HomeTest, ATildeAtTheBeginningIsAHomeDirectory) {
  EXPECT_EQ(ExpandHome("~"), "/home/zuul");
  EXPECT_EQ(ExpandHome("~/etc/nodepool.yaml"), "/home/zuul/etc/nodepool.yaml");
  EXPECT_EQ(ExpandHome("~root/x"), "/root/x");
  ::setenv("HOME", "/", 1);
  EXPECT_EQ(ExpandHome("~"), "/");
  EXPECT_EQ(ExpandHome("~/x"), "/x");
}

TEST_F(HomeTest, OtherPathsStay) {
  for (const char* path : {"", "/etc/~/x", "a~b", "x/~", "~no-such-user/x"})
    EXPECT_EQ(ExpandHome(path), path);
}

TEST_F(HomeTest, WithoutTheVariableTheSystemsEntryIsUsed) {
  ::unsetenv("HOME");
  EXPECT_EQ(ExpandHome("~").substr(0, 1), "/");
}

TEST(ConfigPathTest, AMissingFileIsAnErrorThatSaysHowToNameAnother) {
  try {
    RequireConfig("/no/such.yaml");
    FAIL() << "there is no such file";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "no configuration: /no/such.yaml does not exist; name one with -c FILE or NODEPOOL_CONFIG");
  }
}

TEST(ConfigPathTest, WhatIsThereIsLeftToTheLoader) { EXPECT_NO_THROW(RequireConfig("/")); }

}  // namespace

}  // namespace nodepool::daemon
