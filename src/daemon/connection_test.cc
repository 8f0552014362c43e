#include "daemon/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool::daemon {

namespace {

namespace fs = std::filesystem;

class ClientSecretTest : public ::testing::Test {
 protected:
  ClientSecretTest() {
    embedded_.state_dir = temporary_.path();
    file_ = ClientSecretFile(embedded_);
  }

  void Write(const std::string& content) const { std::ofstream(file_) << content; }

  testing::TemporaryFolder temporary_;
  config::EmbeddedZooKeeper embedded_;
  std::string file_;
};

TEST_F(ClientSecretTest, IsMadeOnceAndReadableForItsOwnerAlone) {
  EXPECT_FALSE(ClientCredentials(file_));
  std::string secret = MakeClientSecret(file_);
  EXPECT_EQ(secret.size(), 64U);
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(MakeClientSecret(file_), secret) << "it is the same after a restart";
  EXPECT_EQ(ClientCredentials(file_)->password, secret);
  EXPECT_EQ(std::distance(fs::directory_iterator(embedded_.state_dir), fs::directory_iterator()), 1)
      << "nothing else is left in the folder";
}

TEST_F(ClientSecretTest, MayBeChosen) {
  Write("correct-horse-battery\n");
  EXPECT_EQ(MakeClientSecret(file_), "correct-horse-battery");
}

TEST_F(ClientSecretTest, WhatCanBeGuessedIsNoSecret) {
  for (const char* content : {"", "\n", "short\n", "several words are a mistake\n"}) {
    Write(content);
    EXPECT_THROW(MakeClientSecret(file_), Error) << content;
    EXPECT_EQ(ClientCredentials(file_)->password, "") << "clients leave the decision to the server";
  }
  Write(std::string(5000, 'x'));
  EXPECT_THROW(MakeClientSecret(file_), Error);
}

TEST_F(ClientSecretTest, ClientsThatCannotReadItHaveAnEmptyOne) {
  fs::create_directory(file_);
  EXPECT_EQ(ClientCredentials(file_)->password, "");
  EXPECT_THROW(MakeClientSecret(file_), Error);
}

}  // namespace

}  // namespace nodepool::daemon
