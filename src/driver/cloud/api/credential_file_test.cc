#include "driver/cloud/api/credential_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temporary_folder.h"

namespace nodepool::driver::cloud::api {
namespace {

class CredentialFileTest : public ::testing::Test {
 protected:
  CredentialFileTest() { path_ = folder_ + "/key.json"; }

  // What is read of a file with that content, or why it cannot be.
  std::string Read(const std::string& content) {
    std::ofstream(path_) << content;
    try {
      return ReadCredentialFile<std::string>(path_, [](const boost::json::object& file) {
        return Needed(file, "id") + " " + UrlIn(file, "url", "http://usual");
      });
    } catch (const Error& error) {
      return error.message();
    }
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  std::string path_;
};

TEST_F(CredentialFileTest, MembersOfTheFile) {
  EXPECT_EQ(Read(R"({"id": "a"})"), "a http://usual");
  EXPECT_EQ(Read(R"({"id": "a", "url": "https://other"})"), "a https://other");
}

TEST_F(CredentialFileTest, FaultsNameTheFile) {
  EXPECT_EQ(Read("[]"), path_ + ": it is no JSON object");
  EXPECT_EQ(Read("{}"), "the credentials file " + path_ + ": it has no id");
  EXPECT_EQ(Read(R"({"id": "a", "url": "ftp://x"})"),
            "the credentials file " + path_ + ": its url is no URL with http or https");
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
