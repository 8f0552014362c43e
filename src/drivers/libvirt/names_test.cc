#include "drivers/libvirt/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nodepool::drivers::libvirt {

namespace {

constexpr const char* kMachineUuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

TEST(VolumeNames, SayWhoseAMachinesVolumeIs) {
  MachineVolume volume{"here", "0000000042", "0a1b2c3d", kRootPart};
  EXPECT_EQ(NameOf(volume), "np.here.node.0000000042.0a1b2c3d.root");
  EXPECT_EQ(ParseMachineVolume(NameOf(volume)), volume);
  std::map<std::string, std::string> metadata = {{"nodepool_provider_name", "here"},
                                                 {"nodepool_node_id", "0000000042"}};
  EXPECT_EQ(MetadataOf(volume), metadata);
}

TEST(VolumeNames, SayOfWhichUploadAnImageIs) {
  ImageVolume volume{"here", "0000000007", "0000000001", "qcow2"};
  EXPECT_EQ(NameOf(volume), "np.here.image.0000000007.0000000001.qcow2");
  EXPECT_EQ(ParseImageVolume(NameOf(volume)), volume);
  EXPECT_EQ(MetadataOf(volume).at("nodepool_upload_id"), "0000000001");
}

TEST(VolumeNames, AMarkSaysWhichImageIsUnfinished) {
  ImageVolume volume{"here", "0000000007", "0000000001", "qcow2"};
  std::string mark = MarkOf(NameOf(volume));
  EXPECT_EQ(ParseMark(mark), volume);
  EXPECT_EQ(ParseImageVolume(mark), std::nullopt);
  EXPECT_EQ(ParseMark(NameOf(volume)), std::nullopt);
  EXPECT_EQ(ParseMark("debian.unfinished"), std::nullopt);
}

// LV-38
TEST(VolumeNames, AnyProviderNameReadsBack) {
  for (const char* provider :
       {"a.b", "a/b", "../x", "%2e", "node", "np", "Büro", " ", "a\nb", "np.x.node.1"}) {
    MachineVolume volume{provider, "0000000042", "0a1b2c3d", kConsolePart};
    EXPECT_EQ(ParseMachineVolume(NameOf(volume)), volume) << provider;
    EXPECT_EQ(NameOf(volume).find('/'), std::string::npos) << provider;
    EXPECT_EQ(ParseImageVolume(NameOf(volume)), std::nullopt) << provider;
    ImageVolume image{provider, "0000000007", "0000000001", "raw"};
    EXPECT_EQ(ParseImageVolume(NameOf(image)), image) << provider;
  }
}

TEST(VolumeNames, OfFetchedImagesReadBack) {
  FetchedVolume image{"he.re", std::string(64, 'a'), "qcow2"};
  auto parsed = ParseFetchedVolume(NameOf(image));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->provider, "he.re");
  EXPECT_EQ(parsed->format, "qcow2");
  for (const char* name : {"np.here.cloud.aaaa.qcow2", "np.here.image.aaaaaaaaaaaaaaaa.qcow2",
                           "np.here.cloud.aaaaaaaaaaaaaaaa.qcow2.unfinished", "debian.qcow2"}) {
    EXPECT_FALSE(ParseFetchedVolume(name)) << name;
  }
  EXPECT_EQ(WithoutMark(MarkOf(NameOf(image))), NameOf(image));
  EXPECT_EQ(WithoutMark("debian.qcow2"), "debian.qcow2");
}

TEST(VolumeNames, ALogThatWasRotatedBelongsToItsMachine) {
  auto volume = ParseMachineVolume("np.here.node.0000000042.0a1b2c3d.console.0");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->part, "console.0");
  EXPECT_EQ(NameOf(*volume), "np.here.node.0000000042.0a1b2c3d.console.0");
}

// LV-29
TEST(VolumeNames, OtherNamesAreForeign) {
  for (const char* name :
       {"", "debian.qcow2", "np", "np.here", "np.here.node.1.0a1b2c3d", "np.here.node.1.0a1b2c3d.root.0",
        "np.here.node.1.0a1b2c3d.other", "np.here.node.1.0A1B2C3D.root", "np.here.node.1.0a1b2c3.root",
        "np..node.1.0a1b2c3d.root", "np.%61.node.1.0a1b2c3d.root", "np.%zz.node.1.0a1b2c3d.root",
        "np.%2.node.1.0a1b2c3d.root", "xx.here.node.1.0a1b2c3d.root", "np.here.node.1.0a1b2c3d.root.",
        "np.here.node.1.0a1b2c3d.console.x"}) {
    EXPECT_EQ(ParseMachineVolume(name), std::nullopt) << name;
  }
  EXPECT_EQ(ParseImageVolume("np.here.image.1.2"), std::nullopt);
  EXPECT_EQ(ParseImageVolume("np.here.image.1.2.raw.3"), std::nullopt);
}

TEST(MachineIds, AreHostAndUuid) {
  MachineId id{"rack-1", kMachineUuid};
  EXPECT_EQ(id.ToText(), std::string("rack-1/") + kMachineUuid);
  EXPECT_EQ(ParseMachineId(id.ToText()), id);
  EXPECT_EQ(id.digits(), "0a1b2c3d");
  EXPECT_EQ(MacAddressOf(id), "52:54:00:0a:1b:2c");
  EXPECT_EQ(MacAddressOf(id, 2), "52:54:02:0a:1b:2c");
  for (const std::string& text :
       {std::string(), std::string(kMachineUuid), std::string("/") + kMachineUuid,
        std::string("a/0A1B2C3D-4e5f-4a6b-8c7d-9e0f1a2b3c4d"), std::string("a/b/") + kMachineUuid,
        std::string("a/") + kMachineUuid + "0"}) {
    EXPECT_EQ(ParseMachineId(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
