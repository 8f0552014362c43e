#include "daemon/config_path.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::daemon {
namespace {

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
