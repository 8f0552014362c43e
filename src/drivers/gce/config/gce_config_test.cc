#include "drivers/gce/config/gce_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"

namespace nodepool::drivers::gce {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A provider with one label; each text is more settings, those of maps in braces after a comma.
struct GceParts {
  std::string label = ", cloud-image: c, instance-type: n1-standard-1";
  std::string pool;
  std::string image = ", image-project: debian-cloud, image-family: debian-12, username: zuul, key: k";
  std::string provider;
  std::string place = "project: p\nregion: us-central1\nzone: us-central1-a";
};
std::string TextOf(const GceParts& parts) {
  return "name: g\ndriver: gce\n" + parts.place + "\ncloud-images: [{name: c" + parts.image + "}]\n" +
         parts.provider + "\npools: [{name: main" + parts.pool + ", labels: [{name: l" + parts.label +
         "}]}]\n";
}

class GceConfigTest : public ::testing::Test {
 protected:
  GceConfigTest() {
    config_.path = "nodepool.yaml";
    config_.labels[LabelName("l")].name = LabelName("l");
    config::DiskImage& image = config_.diskimages[ImageName("d")];
    image.name = ImageName("d");
    image.username = "cloud-user";
  }
  static std::string VerdictOf(const std::string& text) {
    auto value = config::ParseYaml(text);
    std::vector<config::Problem> problems = config::Validate(*value, config::WithCommonSettings(GceSchema()));
    return problems.empty() ? "" : problems.front().message + " @ " + problems.front().path;
  }
  static std::string Verdict(const GceParts& parts) { return VerdictOf(TextOf(parts)); }
  std::shared_ptr<const GceConfig> LoadText(const std::string& text) {
    config::ProviderSection section{ProviderName("g"), "gce", *config::ParseYaml(text)};
    return LoadGceConfig(section, config_);
  }
  std::shared_ptr<const GceConfig> Load(const GceParts& parts) { return LoadText(TextOf(parts)); }
  std::string LoadError(const GceParts& parts) {
    try {
      Load(parts);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  const GceLabel& LabelWith(const std::string& settings) {
    loaded_ = Load({.label = settings});
    return driver::cloud::As<GceLabel>(*loaded_->pools.at(PoolName("main"))->labels.at(LabelName("l")));
  }

  config::Config config_;
  std::shared_ptr<const GceConfig> loaded_;
};

// GCE-1
TEST_F(GceConfigTest, TheSameVerdictsAsThePythonValidator) {
  EXPECT_EQ(Verdict({}), "");
  EXPECT_EQ(Verdict({.provider = "rate-limit: 2"}), "");
  EXPECT_EQ(Verdict({.image = ", image-id: x, image-family: y"}), "");
  EXPECT_EQ(Verdict({.image = ", connection-type: winrm, connection-port: 5986, shell-type: cmd"}), "");
  EXPECT_EQ(Verdict({.pool = ", use-internal-ip: true, max-servers: 4, node-attributes: {a: b}"}), "");
  for (const char* missing : {"project", "region", "zone"}) {
    std::string place;
    for (const char* key : {"project", "region", "zone"}) {
      if (std::string(key) != missing) place += std::string(key) + ": us-central1-a\n";
    }
    EXPECT_EQ(Verdict({.place = place}), std::string("required key not provided @ data['") + missing + "']");
  }
  const std::string label = "data['pools'][0]['labels'][0]";
  EXPECT_EQ(Verdict({.label = ", instance-type: t"}),
            "required key not provided @ " + label + "['cloud-image']");
  EXPECT_EQ(Verdict({.label = ", cloud-image: c"}),
            "required key not provided @ " + label + "['instance-type']");
  EXPECT_EQ(Verdict({.label = ", cloud-image: c, instance-type: t, volume-size: \"10\""}),
            "expected int for dictionary value @ " + label + "['volume-size']");
  EXPECT_EQ(Verdict({.provider = "rate: 2"}), "extra keys not allowed @ data['rate']");
  EXPECT_EQ(Verdict({.pool = ", host-key-checking: false"}),
            "extra keys not allowed @ data['pools'][0]['host-key-checking']");
  EXPECT_EQ(VerdictOf("name: g\ndriver: gce\nproject: p\nregion: r\nzone: r-a\n"),
            "required key not provided @ data['pools']");
}

// GCE-1
TEST_F(GceConfigTest, KeysOfOurOwnAreAccepted) {
  for (const char* provider :
       {"zones: [us-central1-a, us-central1-b]", "credentials-file: /x", "image-import-timeout: 60",
        "object-storage: {bucket-name: b}\ndiskimages: [{name: d, architecture: ARM64}]",
        "max-leaked-share: 10"})
    EXPECT_EQ(Verdict({.provider = provider}), "") << provider;
  EXPECT_EQ(Verdict({.pool = ", network: n, subnetwork: s, public-ipv4: false, public-ipv6: true, tags: [a], "
                             "service-account: {email: e, scopes: [s]}"}),
            "");
  EXPECT_EQ(Verdict({.label = ", diskimage: d, instance-types: [a, b], use-spot: true, spot-notice: 120, "
                              "labels: {a: b}"}),
            "");
}

TEST_F(GceConfigTest, WhatTheDaemonsRead) {
  loaded_ = Load({.label = ", cloud-image: c, instance-types: [a, b], volume-type: pd-ssd, volume-size: 40",
                  .pool = ", host-key-checking: false, use-internal-ip: true",
                  .provider = "zones: [us-central1-b, us-central1-a]\nrate: 5"});
  EXPECT_THAT(loaded_->zones, ElementsAre("us-central1-b", "us-central1-a"));
  EXPECT_EQ(loaded_->rate, 5);
  EXPECT_FALSE(loaded_->manages_images);
  const auto& pool = loaded_->pools.at(PoolName("main"));
  EXPECT_TRUE(pool->use_internal_ip);
  const auto& label = driver::cloud::As<GceLabel>(*pool->labels.at(LabelName("l")));
  EXPECT_FALSE(label.host_key_checking);
  EXPECT_THAT(label.instance_types, ElementsAre("a", "b"));
  EXPECT_EQ(label.volume_type, "pd-ssd");
  EXPECT_EQ(label.volume_size, 40);
  EXPECT_EQ(label.connection.username, "zuul");
  EXPECT_EQ(LabelWith(", cloud-image: c, instance-type: t").volume_type, "pd-standard");
  EXPECT_THAT(config_.warnings, IsEmpty());
}

// GCE-2
TEST_F(GceConfigTest, WhatCannotBeLoaded) {
  EXPECT_THAT(LoadError({.label = ", cloud-image: x, instance-type: t"}),
              HasSubstr("'x' of label l is not one of the cloud-images of provider g"));
  EXPECT_THAT(LoadError({.image = ", image-id: i, key: k"}), HasSubstr("the key needs a username"));
  std::string twice = TextOf({});
  twice.insert(twice.rfind(']'), ", {name: main, labels: []}");
  EXPECT_THROW(LoadText(twice), Error);
  EXPECT_THAT(LoadError({.label = ", cloud-image: c, instance-type: t, spot-notice: 30"}),
              HasSubstr("120 seconds, or none"));
  EXPECT_THAT(LoadError({.place = "project: a/b\nregion: r\nzone: r-a"}), HasSubstr("no name of a project"));
}

// GCE-3
TEST_F(GceConfigTest, TheSameFileTwiceIsTheSameProvider) {
  EXPECT_EQ(Load({})->fingerprint, Load({})->fingerprint);
  EXPECT_NE(Load({})->fingerprint, Load({.pool = ", max-servers: 2"})->fingerprint);
}

// GCE-12
TEST_F(GceConfigTest, WhatIsDoubtful) {
  auto warning = [this](const GceParts& parts) {
    config_.warnings.clear();
    Load(parts);
    return config_.warnings.empty() ? "" : config_.warnings.front();
  };
  EXPECT_THAT(warning({.label = ", cloud-image: c, instance-type: t, volume-type: standard"}),
              HasSubstr("pd-standard is probably meant"));
  EXPECT_THAT(warning({.place = "project: p\nregion: us-east1\nzone: us-central1-a"}),
              HasSubstr("is not in region us-east1"));
  EXPECT_THAT(warning({.image = ", image-family: f"}), HasSubstr("image-project and image-family"));
  EXPECT_THAT(warning({.provider = "rate-limit: 1"}), HasSubstr("it has no effect"));
  EXPECT_EQ(warning({.provider = "rate-limit: 3"}), "");
  EXPECT_EQ(Load({.provider = "rate-limit: 3"})->rate, 3);
  EXPECT_THAT(warning({.provider = "diskimages: [{name: d}]"}), HasSubstr("object-storage"));
}

// GCE-14
TEST_F(GceConfigTest, LabelsThatGoogleRefuses) {
  auto with = [this](const std::string& labels) {
    return LoadError({.label = ", cloud-image: c, instance-type: t, labels: {" + labels + "}"});
  };
  EXPECT_EQ(with("team: ci, cost-centre: a_1-b"), "no error");
  EXPECT_THAT(with("team: Upper"), HasSubstr("Google permits no value Upper of label team"));
  EXPECT_THAT(with("team: " + std::string(64, 'a')), HasSubstr("Google permits no value"));
  EXPECT_THAT(with("Team: a"), HasSubstr("Google permits no label Team"));
  EXPECT_THAT(with("nodepool_node_id: a"), HasSubstr("Google permits no label"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "l" + std::to_string(i) + ": a, ";
  EXPECT_THAT(with(many), HasSubstr("64 labels that Google permits"));
}

}  // namespace

}  // namespace nodepool::drivers::gce
