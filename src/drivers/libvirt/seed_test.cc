#include "drivers/libvirt/seed.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

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

SeedContent Content() {
  return {"0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",        "np0000000042", "52:54:00:0a:1b:2c",
          {"ssh-ed25519 AAAA a: \"b\"", "ssh-rsa BBBB"}, std::nullopt,   std::nullopt};
}

// The files of an ISO image, by path.
std::map<std::string, std::string> FilesIn(const std::string& image) {
  std::unique_ptr<archive, decltype(&archive_read_free)> iso(archive_read_new(), &archive_read_free);
  archive_read_support_format_iso9660(iso.get());
  EXPECT_EQ(archive_read_open_memory(iso.get(), image.data(), image.size()), ARCHIVE_OK);
  std::map<std::string, std::string> files;
  archive_entry* entry = nullptr;
  while (archive_read_next_header(iso.get(), &entry) == ARCHIVE_OK) {
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string content(static_cast<std::size_t>(archive_entry_size(entry)), '\0');
    archive_read_data(iso.get(), content.data(), content.size());
    files[archive_entry_pathname(entry)] = content;
  }
  return files;
}

TEST(IsoImages, HoldTheirFilesAndTheirLabel) {
  std::map<std::string, std::string> files = {
      {"meta-data", "a\n"}, {"openstack/latest/meta_data.json", "{}"}, {"empty", ""}};
  std::string image = IsoImage("config-2", files);
  EXPECT_EQ(FilesIn(image), files);
  // In the Joliet descriptor, which is what finds disks by their label: two bytes for each character.
  std::string label;
  for (char c : std::string("config-2")) label += {'\0', c};
  EXPECT_THAT(image, HasSubstr(label));
}

// LV-9
TEST(Seeds, NoCloud) {
  Seed seed = MakeSeed(SeedFormat::kNoCloud, Content());
  EXPECT_EQ(seed.label, "cidata");
  EXPECT_EQ(seed.files.at("meta-data"),
            "instance-id: 0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d\nlocal-hostname: np0000000042\npublic-keys:\n"
            "  - \"ssh-ed25519 AAAA a: \\\"b\\\"\"\n  - \"ssh-rsa BBBB\"\n");
  EXPECT_THAT(seed.files.at("user-data"),
              ::testing::StartsWith("#cloud-config\nssh_authorized_keys:\n  - \"ssh"));
}

// LV-9
TEST(Seeds, ConfigDrive) {
  Seed seed = MakeSeed(SeedFormat::kConfigDrive, Content());
  EXPECT_EQ(seed.label, "config-2");
  auto meta_data = boost::json::parse(seed.files.at("openstack/latest/meta_data.json")).as_object();
  EXPECT_EQ(meta_data.at("hostname").as_string(), "np0000000042");
  EXPECT_EQ(meta_data.at("public_keys").at("key-1").as_string(), "ssh-rsa BBBB");
  EXPECT_THAT(seed.files.at("openstack/latest/network_data.json"), HasSubstr("52:54:00:0a:1b:2c"));
}

TEST(Seeds, UserDataIsVerbatim) {
  SeedContent content = Content();
  content.userdata = "#!/bin/sh\necho {a} ${b}\n";
  EXPECT_EQ(MakeSeed(SeedFormat::kNoCloud, content).files.at("user-data"), content.userdata);
  EXPECT_EQ(MakeSeed(SeedFormat::kConfigDrive, content).files.at("openstack/latest/user_data"),
            content.userdata);
}

// LV-10
TEST(Seeds, AHostKeyIsInVendorDataBesideUserData) {
  SeedContent content = Content();
  content.userdata = "#!/bin/sh\n";
  content.host_key = SshKey{"-----BEGIN\nAAAA\n-----END\n", "ssh-ed25519 CCCC"};
  std::string expected =
      "#cloud-config\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n    -----BEGIN\n    AAAA\n"
      "    -----END\n  ed25519_public: ssh-ed25519 CCCC\n";
  Seed seed = MakeSeed(SeedFormat::kNoCloud, content);
  EXPECT_EQ(seed.files.at("vendor-data"), expected);
  EXPECT_EQ(seed.files.at("user-data"), "#!/bin/sh\n");
  seed = MakeSeed(SeedFormat::kConfigDrive, content);
  auto vendor_data = boost::json::parse(seed.files.at("openstack/latest/vendor_data.json"));
  EXPECT_EQ(vendor_data.at("cloud-init").as_string(), expected);
}

TEST(Seeds, WithoutKeysListsAreEmpty) {
  SeedContent content = Content();
  content.authorized_keys.clear();
  EXPECT_THAT(MakeSeed(SeedFormat::kNoCloud, content).files.at("meta-data"), HasSubstr("public-keys: []\n"));
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
