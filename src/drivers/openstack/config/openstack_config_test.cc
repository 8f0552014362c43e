#include "drivers/openstack/config/openstack_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/disk_images.h"
#include "config/main_schema.h"
#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"

namespace nodepool::drivers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OpenstackConfigTest : public ::testing::Test {
 protected:
  OpenstackConfigTest() {
    config_.labels[LabelName("l")].name = LabelName("l");
    for (const char* name : {"d", "e"}) {
      config::DiskImage& image = config_.diskimages[ImageName(name)];
      image.name = ImageName(name);
      image.username = "cloud-user";
      image.formats = {"vhd"};
    }
  }

  OpenstackConfig Load(const std::string& text, const std::string& image_format = "qcow2") {
    config::ProviderSection section{ProviderName("p"), "openstack", *config::ParseYaml(text)};
    OpenstackConfig result;
    ReadOpenstackConfig(section, image_format, config_, result);
    return result;
  }
  std::string ErrorOf(const std::string& text) {
    try {
      Load(text);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  static std::string WithLabel(const std::string& label) {
    return "name: p\ncloud: c\ndiskimages: [{name: d, connection-type: winrm}]\n"
           "cloud-images: [{name: c, username: u, image-id: id-1}]\n"
           "pools: [{name: main, networks: [n1], host-key-checking: false, labels: [" +
           label + "]}]\n";
  }
  static const OpenstackPool& PoolOf(const OpenstackConfig& config) {
    return driver::cloud::As<OpenstackPool>(*config.pools.at(PoolName("main")));
  }
  OpenstackLabel LoadLabel(const std::string& label) {
    OpenstackConfig config = Load(WithLabel(label));
    return driver::cloud::As<OpenstackLabel>(*PoolOf(config).labels.at(LabelName("l")));
  }

  config::Config config_;
};

// driver-openstack.md 2.1
TEST_F(OpenstackConfigTest, DefaultsOfTheProvider) {
  OpenstackConfig config = Load("name: p");
  EXPECT_TRUE(config.manages_images);
  EXPECT_EQ(config.cloud, std::nullopt);
  EXPECT_EQ(config.region_name, std::nullopt);
  EXPECT_EQ(config.rate, std::nullopt);  // D-90
  EXPECT_EQ(config.boot_timeout, std::chrono::seconds(60));
  EXPECT_EQ(config.launch_timeout, std::chrono::seconds(3600));
  EXPECT_EQ(config.launch_retries, 3);
  EXPECT_EQ(config.image_upload_timeout, std::chrono::seconds(3600));
  EXPECT_EQ(config.image_name_format, "{image_name}-{timestamp}");
  EXPECT_FALSE(config.clean_floating_ips);     // D-94
  EXPECT_FALSE(config.deletes_legacy_leaked);  // D-55, D-69
  EXPECT_EQ(config.port_cleanup_interval, std::chrono::seconds(600));
  EXPECT_EQ(config.max_leaked_share, 50);  // D-55, D-99
}

TEST_F(OpenstackConfigTest, TheProvidersImageFormatIsBuilt) {
  Load("name: p\ndiskimages: [{name: d}]", "raw");
  EXPECT_THAT(config_.diskimages[ImageName("d")].formats, ElementsAre("raw", "vhd"));
  EXPECT_THAT(config_.diskimages[ImageName("e")].formats, ElementsAre("vhd"));
}

// O-unmanaged
TEST_F(OpenstackConfigTest, ImagesSayHowToConnect) {
  OpenstackConfig config = Load(
      "name: p\ndiskimages: [{name: d, connection-type: winrm, meta: {a: 1}}, {name: e, connection-port: "
      "23}]\n"
      "cloud-images: [{name: c}, {name: n, image-name: other}, {name: i, image-id: id}]\n");
  const OpenstackDiskImage& d = *config.FindDiskImage(ImageName("d"));
  EXPECT_EQ(d.connection.connection_port, 5986);
  EXPECT_EQ(d.connection.username, "cloud-user");
  EXPECT_EQ(d.meta.at("a").as_int64(), 1);
  EXPECT_EQ(config.FindDiskImage(ImageName("e"))->connection.connection_port, 23);
  EXPECT_EQ(config.cloud_images.at("c").external_name, "c");
  EXPECT_EQ(config.cloud_images.at("c").connection.username, std::nullopt);
  EXPECT_EQ(config.cloud_images.at("n").external_name, "other");
  EXPECT_FALSE(config.cloud_images.at("n").is_id);
  EXPECT_EQ(config.cloud_images.at("i").external_name, "id");
  EXPECT_TRUE(config.cloud_images.at("i").is_id);
}

// driver-openstack.md 2.4
TEST_F(OpenstackConfigTest, Pools) {
  OpenstackConfig config = Load(
      "name: p\npriority: 7\npools:\n- {name: main, max-servers: 5, max-cores: 1, max-ram: 2, max-volumes: "
      "3, "
      "max-volume-gb: 4, availability-zones: [z], security-groups: [s], auto-floating-ip: false, "
      "ignore-provider-quota: true}\n- {name: other, priority: 1}\n");
  const OpenstackPool& pool = PoolOf(config);
  EXPECT_EQ(pool.max_servers, 5);
  Resources limits = {{"cores", 1}, {"ram", 2}, {"volumes", 3}, {"volume-gb", 4}};
  EXPECT_EQ(pool.limits, limits);
  EXPECT_EQ(pool.priority, 7);
  EXPECT_THAT(pool.availability_zones, ElementsAre("z"));
  EXPECT_THAT(pool.security_groups, ElementsAre("s"));
  EXPECT_FALSE(pool.auto_floating_ip);
  EXPECT_TRUE(pool.ignore_provider_quota);
  EXPECT_FALSE(pool.use_internal_ip);
  EXPECT_EQ(config.pools.at(PoolName("other"))->priority, 1);
}

// driver-openstack.md 2.5
TEST_F(OpenstackConfigTest, Labels) {
  OpenstackLabel label = LoadLabel("{name: l, diskimage: d, min-ram: 8192}");
  EXPECT_EQ(label.diskimage, ImageName("d"));
  EXPECT_EQ(label.connection.connection_type, "winrm");
  EXPECT_FALSE(label.host_key_checking);
  EXPECT_EQ(label.min_ram, 8192);
  EXPECT_EQ(label.volume_size, 50);
  EXPECT_THAT(label.networks, ElementsAre("n1"));
  label = LoadLabel(
      "{name: l, cloud-image: c, flavor-name: f, networks: [n2, n3], host-key-checking: true, "
      "instance-properties: {k: v}, dynamic-instance-properties: {t: '{request.tenant_name}'}}");
  EXPECT_EQ(label.cloud_image, "c");
  EXPECT_EQ(label.connection.username, "u");
  EXPECT_EQ(label.flavor_name, "f");
  EXPECT_TRUE(label.host_key_checking);
  EXPECT_THAT(label.networks, ElementsAre("n2", "n3"));
  EXPECT_EQ(label.instance_properties.at("k").as_string(), "v");
  EXPECT_EQ(label.dynamic_instance_properties.at("t"), "{request.tenant_name}");
}

TEST_F(OpenstackConfigTest, RefusesReferencesToNothing) {
  EXPECT_THAT(ErrorOf("name: p\ndiskimages: [{name: x}]"),
              HasSubstr("diskimages[0].name: 'x' is not one of"));
  EXPECT_THAT(ErrorOf(WithLabel("{name: m, diskimage: d}")),
              HasSubstr("label 'm' is not one of the top-level labels"));
  EXPECT_THAT(ErrorOf(WithLabel("{name: l, diskimage: x}")), HasSubstr("diskimage: 'x' is not one of"));
  EXPECT_THAT(ErrorOf(WithLabel("{name: l, cloud-image: x}")),
              HasSubstr("cloud-image: 'x' of label l is not one of the cloud-images of provider p"));
  EXPECT_THAT(ErrorOf(WithLabel("{name: l}")), HasSubstr("needs diskimage or cloud-image"));
}

TEST_F(OpenstackConfigTest, APortIsFrom1To65535) {
  auto with_port = [](int port) {
    return "name: p\ndiskimages: [{name: d, connection-port: " + std::to_string(port) + "}]";
  };
  for (int port : {1, 65535}) EXPECT_NO_THROW(Load(with_port(port))) << port;
  for (int port : {0, 65536})
    EXPECT_THAT(ErrorOf(with_port(port)), HasSubstr("expected a number from 1 to 65535")) << port;
}

// F-config-eq, CC-01, CC-02, CC-06..10
TEST_F(OpenstackConfigTest, TheFingerprintFollowsEverySetting) {
  std::string base =
      "name: p\nrate: 1\ndiskimages: [{name: d}]\ncloud-images: [{name: c}]\n"
      "pools: [{name: main, max-servers: 5, labels: [{name: l, diskimage: d, min-ram: 1}]}]";
  std::string fingerprint = Load(base).fingerprint;
  EXPECT_EQ(Load(base + "\n# a comment").fingerprint, fingerprint);
  const std::pair<const char*, const char*> changes[] = {{"name: p", "name: q"},
                                                         {"rate: 1", "rate: 2"},
                                                         {"max-servers: 5", "max-servers: 6"},
                                                         {"{name: d}", "{name: d, pause: true}"},
                                                         {"{name: c}", "{name: c2}"},
                                                         {"min-ram: 1", "min-ram: 2"}};
  for (const auto& [from, to] : changes) {
    std::string changed = base;
    changed.replace(changed.find(from), std::string(from).size(), to);
    EXPECT_NE(Load(changed).fingerprint, fingerprint) << to;
  }
  EXPECT_THAT(fingerprint, ::testing::StartsWith("openstack ")) << "another driver is another provider";
}

// CC-05
TEST_F(OpenstackConfigTest, TheFingerprintFollowsTheImages) {
  std::string text = "name: p\ndiskimages: [{name: d}]";
  std::string before = Load(text).fingerprint;
  config_.diskimages[ImageName("e")].username = "other";
  EXPECT_EQ(Load(text).fingerprint, before);
  config_.diskimages[ImageName("d")].username = "other";
  EXPECT_NE(Load(text).fingerprint, before);
}

// O-sdk-bad
TEST_F(OpenstackConfigTest, Validation) {
  auto problems = [](const std::string& text) {
    std::vector<std::string> texts;
    for (const config::Problem& problem : config::Validate(*config::ParseYaml(text), OpenstackSchema())) {
      texts.push_back(problem.message + " @ " + problem.path);
    }
    return texts;
  };
  auto label = [&](const std::string& text) {
    return problems("cloud: c\npools: [{name: m, labels: [" + text + "]}]");
  };
  EXPECT_THAT(problems("{}"), ElementsAre("required key not provided @ data['cloud']"));
  EXPECT_THAT(problems("{cloud: c, rate: 1}"), IsEmpty());
  EXPECT_THAT(problems("{cloud: c, hostname-format: x}"),
              ElementsAre("extra keys not allowed @ data['hostname-format']"));
  EXPECT_THAT(label("{name: l, min-ram: 1, diskimage: d}"), IsEmpty());
  EXPECT_THAT(label("{name: l, diskimage: d}"),
              ElementsAre("required key not provided @ data['pools'][0]['labels'][0]['min-ram']"));
  EXPECT_THAT(label("{name: l, min-ram: 1}"),
              ElementsAre("required key not provided @ data['pools'][0]['labels'][0]['diskimage']"));
  EXPECT_THAT(label("{name: l, min-ram: 1, diskimage: d, cloud-image: c}"), ::testing::SizeIs(1));
}

}  // namespace
}  // namespace nodepool::drivers
