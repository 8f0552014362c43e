#include "drivers/libvirt/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/temporary_folder.h"

namespace nodepool::drivers::libvirt {

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class KeysTest : public ::testing::Test {
 protected:
  static std::string OutputOf(const std::string& command) {
    std::string output;
    FILE* pipe = popen(command.c_str(), "r");
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
    pclose(pipe);
    return output;
  }
  std::string ContentOf(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  nodepool::testing::TemporaryFolder temporary_;
  fs::path folder = temporary_.path();
};

// LV-3
TEST_F(KeysTest, AKeyIsMadeOnceAndIsReadByOpenSsh) {
  std::string path = folder / "keys" / "here";
  std::string first = ProviderKey(path).PublicKey().value_or("");
  EXPECT_THAT(first, StartsWith("ssh-ed25519 AAAA"));
  EXPECT_EQ(ProviderKey(path).PublicKey(), first) << "made again";
  EXPECT_EQ(OutputOf("ssh-keygen -y -f " + path), first + " nodepool\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "keys"), {}), 1);
}

TEST_F(KeysTest, KeysOfAnyTypeAreRead) {
  for (const char* type : {"ed25519", "ecdsa", "rsa"}) {
    std::string path = folder / type;
    OutputOf(std::string("ssh-keygen -q -N secret -C nodepool -t ") + type + " -f " + path);
    EXPECT_EQ(*ProviderKey(path).PublicKey() + " nodepool\n", ContentOf(path + ".pub")) << type;
  }
}

TEST_F(KeysTest, WhatIsNoKeyIsNamed) {
  std::string path = folder / "other";
  for (const char* content :
       {"", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----"}) {
    std::ofstream(path) << content;
    try {
      ProviderKey(path).PublicKey();
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      EXPECT_THAT(error.message(), HasSubstr(path));
    }
  }
  EXPECT_THROW(ProviderKey(folder / "other" / "below").PublicKey(), Error);
}

TEST_F(KeysTest, WithoutAPathThereIsNone) { EXPECT_EQ(ProviderKey(std::nullopt).PublicKey(), std::nullopt); }

}  // namespace

}  // namespace nodepool::drivers::libvirt
