#include "drivers/aws/config/aws_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"
#include "drivers/aws/config/aws_settings.h"

namespace nodepool::drivers::aws {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A provider with one label; `label`, `pool`, `image` and `provider` are more settings, each after a comma.
struct Parts {
  std::string label;
  std::string pool;
  std::string image = ", image-id: ami-1";
  std::string provider;
};
std::string Text(const Parts& parts) {
  return "name: p\ndriver: aws\nregion-name: us-west-2\n"
         "cloud-images: [{name: c, username: u" +
         parts.image + "}]\n" + parts.provider + "\npools: [{name: main, subnet-id: subnet-1" + parts.pool +
         ", labels: [{name: l, key-name: zuul" + parts.label + "}]}]\n";
}
constexpr const char* kUsual = ", cloud-image: c, instance-type: t3.medium";

class AwsConfigTest : public ::testing::Test {
 protected:
  AwsConfigTest() {
    config_.path = "nodepool.yaml";
    config_.labels[LabelName("l")].name = LabelName("l");
    config::DiskImage& image = config_.diskimages[ImageName("d")];
    image.name = ImageName("d");
    image.username = "cloud-user";
  }

  // What the strict validation finds first, without details; empty: nothing.
  static std::string Verdict(const Parts& parts) {
    auto value = config::ParseYaml(Text(parts));
    std::vector<config::Problem> problems = config::Validate(*value, config::WithCommonSettings(AwsSchema()));
    return problems.empty() ? "" : problems.front().message + " @ " + problems.front().path;
  }

  std::shared_ptr<const AwsConfig> Load(const Parts& parts) {
    config::ProviderSection section{ProviderName("p"), "aws", *config::ParseYaml(Text(parts))};
    return LoadAwsConfig(section, config_);
  }
  std::string LoadError(const Parts& parts) {
    try {
      Load(parts);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  const AwsPool& PoolOf(const Parts& parts) {
    loaded_ = Load(parts);
    return driver::cloud::As<AwsPool>(*loaded_->pools.at(PoolName("main")));
  }
  const AwsLabel& LabelWith(const std::string& settings) {
    return driver::cloud::As<AwsLabel>(*PoolOf({.label = settings}).labels.at(LabelName("l")));
  }

  config::Config config_;
  std::shared_ptr<const AwsConfig> loaded_;
};

// AWS-1
TEST_F(AwsConfigTest, WhatThePythonValidatorAccepts) {
  const std::string fleet = ", cloud-image: c, fleet: {instance-types: [a, b], allocation-strategy: ";
  for (const char* strategy :
       {"prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"}) {
    EXPECT_EQ(Verdict({.label = fleet + strategy + "}"}), "");
  }
  for (const char* label : {kUsual, "", ", imdsv2: null", ", imdsv2: required", ", iam-instance-profile: {}",
                            ", iam-instance-profile: {arn: a}", ", dedicated-host: true, use-spot: true",
                            ", dynamic-tags: {a: 1}", ", volume-size: true"}) {
    EXPECT_EQ(Verdict({.label = label}), "") << label;
  }
  EXPECT_EQ(Verdict({.image = ", image-filters: []"}), "");
  EXPECT_EQ(Verdict({.image = ", image-filters: [{Name: a, Values: [b]}, {name: a, values: []}, {}]"}), "");
  for (const char* provider :
       {"rate: 0.5", "rate: 1", "image-format: vhdx", "object-storage: {bucket-name: b}",
        "max-leaked-share: 10", "image-name-format: x", "image-upload-timeout: 60",
        "max-resources: {L-1216C47A: 10}", "profile-name: x",
        "diskimages: [{name: d, imds-support: v2.0, import-method: image}, {name: d, imds-support: null}]"}) {
    EXPECT_EQ(Verdict({.provider = provider}), "") << provider;
  }
  EXPECT_EQ(Verdict({.pool = ", public-ip-address: false, max-resources: {a: 1}, availability-zone: z"}), "");
}

// AWS-1
TEST_F(AwsConfigTest, WhatThePythonValidatorRefuses) {
  const std::string label = "data['pools'][0]['labels'][0]";
  EXPECT_EQ(Verdict({.label = ", fleet: {instance-types: [a], allocation-strategy: prioritized, "
                              "instance-requirements: {}}"}),
            "extra keys not allowed @ " + label + "['fleet']['instance-requirements']");
  EXPECT_EQ(Verdict({.label = ", fleet: {instance-types: [a], allocation-strategy: cheapest}"}),
            "not a valid value for dictionary value @ " + label + "['fleet']['allocation-strategy']");
  EXPECT_THAT(
      Verdict(
          {.label = ", instance-type: t, fleet: {instance-types: [a], allocation-strategy: prioritized}"}),
      HasSubstr("two or more values in the same group of exclusion"));
  EXPECT_THAT(Verdict({.label = ", cloud-image: c, diskimage: d"}), HasSubstr("group of exclusion"));
  EXPECT_THAT(Verdict({.label = ", iam-instance-profile: {name: n, arn: a}"}),
              HasSubstr("group of exclusion"));
  EXPECT_THAT(Verdict({.image = ", image-id: a, image-filters: []"}), HasSubstr("group of exclusion"));
  EXPECT_THAT(Verdict({.image = ""}), HasSubstr("required key not provided @ data['cloud-images'][0]"));
  EXPECT_THAT(Verdict({.image = ", image-filters: [{names: a}]"}), HasSubstr("extra keys not allowed"));
  EXPECT_EQ(Verdict({.image = ", image-filters: [{name: a, values: [1]}]"}),
            "expected str @ data['cloud-images'][0]['image-filters'][0]['values'][0]");
  for (const char* bad :
       {", imdsv2: maybe", ", ebs-optimized: 1", ", tags: x", ", userdata: null", ", host-key-checking: true",
        ", console-log: true", ", flavor-name: f", ", security-group-id: s", ", networks: []"}) {
    EXPECT_NE(Verdict({.label = bad}), "") << bad;
  }
  for (const char* bad : {", subnet-id: null", ", use-internal-ip: true", ", availability-zones: []",
                          ", ignore-provider-quota: true", ", max-resources: {a: b}"}) {
    EXPECT_NE(Verdict({.pool = bad}), "") << bad;
  }
  for (const char* bad :
       {"hostname-format: x", "image-format: qcow2", "use-internal-ip: true", "host-key-checking: true",
        "public-ipv4: true", "public-ipv6: true", "rate: fast", "object-storage: {}", "max-leaked-share: 101",
        "diskimages: [{name: d, imds-support: v1.0}]", "diskimages: [{name: d, import-method: copy}]"}) {
    EXPECT_NE(Verdict({.provider = bad}), "") << bad;
  }
}

// AWS-1
TEST_F(AwsConfigTest, KeysThatOnlyTheValidatorRequires) {
  auto without = [](const std::string& text) {
    std::string all = Text({.label = kUsual});
    all.erase(all.find(text), text.size());
    return all;
  };
  auto verdict = [](const std::string& text) {
    auto problems = config::Validate(*config::ParseYaml(text), config::WithCommonSettings(AwsSchema()));
    return problems.empty() ? "" : problems.front().message + " @ " + problems.front().path;
  };
  EXPECT_EQ(verdict(without(", key-name: zuul")),
            "required key not provided @ data['pools'][0]['labels'][0]['key-name']");
  EXPECT_EQ(verdict(without("region-name: us-west-2\n")), "required key not provided @ data['region-name']");
  EXPECT_EQ(verdict(without(", username: u")),
            "required key not provided @ data['cloud-images'][0]['username']");
  config::ProviderSection section{ProviderName("p"), "aws",
                                  *config::ParseYaml(without("region-name: us-west-2\n"))};
  EXPECT_EQ(LoadAwsConfig(section, config_)->region_name, std::nullopt);
  section.source = *config::ParseYaml(without(", username: u"));
  EXPECT_THROW(LoadAwsConfig(section, config_), Error);
}

// AWS-2
TEST_F(AwsConfigTest, WhatTheDaemonsRefuse) {
  const std::string usual = kUsual;
  EXPECT_THAT(LoadError({.label = usual + ", dedicated-host: true, use-spot: true"}),
              HasSubstr("Spot instances can not be used on dedicated hosts"));
  EXPECT_THAT(LoadError({.label = usual + ", dedicated-host: true"}),
              HasSubstr("Availability-zone is required for dedicated hosts"));
  EXPECT_EQ(LoadError({.label = usual + ", dedicated-host: true", .pool = ", availability-zone: z"}),
            "no error");
  EXPECT_THAT(LoadError({.provider = "diskimages: [{name: d, import-method: image, imds-support: v2.0}]"}),
              HasSubstr("IMDSv2 requires"));
  EXPECT_THAT(
      LoadError({.provider = "image-format: vhd\ndiskimages: [{name: d, import-method: ebs-direct}]"}),
      HasSubstr("image-format raw"));
  EXPECT_THAT(LoadError({.label = ", cloud-image: x"}),
              HasSubstr("'x' of label l is not one of the cloud-images"));
  EXPECT_THAT(LoadError({.label = ", diskimage: x"}),
              HasSubstr("'x' is not one of the top-level diskimages"));
  EXPECT_THAT(LoadError({.provider = "diskimages: [{name: x}]"}),
              HasSubstr("is not one of the top-level diskimages"));
  EXPECT_THAT(LoadError({.provider = "max-resources: {a: many}"}), HasSubstr("a: expected a number"));
  EXPECT_THAT(LoadError({.provider = "max-leaked-share: 150"}),
              HasSubstr("max-leaked-share: expected a number from 0 to 100"));
  EXPECT_EQ(Load({.provider = "image-name-format: x"})->image_upload_timeout, std::chrono::hours(24));
}

// AWS-2
TEST_F(AwsConfigTest, FiltersInAnyCase) {
  loaded_ = Load(
      {.image = ", image-filters: [{NAME: owner-alias, vALUES: [amazon]}, {name: b, values: [1, x]}, null]"});
  EXPECT_THAT(loaded_->cloud_images.at("c").filters,
              ElementsAre(ImageFilter{"owner-alias", {"amazon"}}, ImageFilter{"b", {"1", "x"}}));
  EXPECT_THAT(config_.warnings, IsEmpty());
  Load({.image = ", image-filters: [{name: name, values: [ubuntu*]}]"});
  EXPECT_THAT(config_.warnings, ElementsAre(AllOf(HasSubstr("nodepool.yaml: line 4, column"),
                                                  HasSubstr("any AWS account can publish"))));
}

// AWS-3
TEST_F(AwsConfigTest, TheSameFileGivesTheSameProvider) {
  const std::string fleet =
      ", cloud-image: c, fleet: {instance-types: [a], allocation-strategy: prioritized}";
  EXPECT_EQ(Load({.label = fleet})->fingerprint, Load({.label = fleet})->fingerprint);
  EXPECT_NE(Load({.label = fleet})->fingerprint, Load({.label = kUsual})->fingerprint);
}

// driver-aws.md 2.6, 9.1
TEST_F(AwsConfigTest, WhatFleetsDoNotKnow) {
  const std::string fleet = ", cloud-image: c, fleet: {instance-types: [a, b], allocation-strategy: ";
  const AwsLabel& label = LabelWith(fleet + "prioritized}");
  EXPECT_THAT(label.instance_types, ElementsAre("a", "b"));
  EXPECT_EQ(label.fleet_strategy, "prioritized");
  LabelWith(fleet + "diversified}, use-spot: true");
  EXPECT_THAT(config_.warnings, IsEmpty());
  LabelWith(fleet + "diversified}");
  LabelWith(fleet + "prioritized}, use-spot: true");
  EXPECT_THAT(config_.warnings,
              ElementsAre(HasSubstr("no allocation-strategy diversified for on-demand instances"),
                          HasSubstr("no allocation-strategy prioritized for spot instances")));
  config_.warnings.clear();
  EXPECT_FALSE(LabelWith(fleet + "prioritized}, ebs-optimized: true, dedicated-host: true").dedicated_host);
  EXPECT_THAT(config_.warnings,
              ElementsAre(HasSubstr("ebs-optimized, dedicated-host has no effect on the fleets of label l")));
}

TEST_F(AwsConfigTest, SeveralTypesAndPlaces) {
  const AwsLabel& label = LabelWith(", cloud-image: c, instance-types: [m5.large, m6i.large]");
  EXPECT_THAT(label.instance_types, ElementsAre("m5.large", "m6i.large"));
  auto places = [this](const std::string& pool) {
    std::string text = Text({.label = kUsual});
    text.replace(text.find("subnet-id: subnet-1"), 19, pool);
    config::ProviderSection section{ProviderName("p"), "aws", *config::ParseYaml(text)};
    auto problems = config::Validate(section.source, config::WithCommonSettings(AwsSchema()));
    if (!problems.empty()) return problems.front().message;
    loaded_ = LoadAwsConfig(section, config_);
    std::string found;
    for (const AwsPlace& place : driver::cloud::As<AwsPool>(*loaded_->pools.at(PoolName("main"))).places) {
      found += place.zone.value_or("-") + "/" + place.subnet_id.value_or("-") + " ";
    }
    return found;
  };
  EXPECT_EQ(places("priority: 1"), "-/- ");
  EXPECT_EQ(places("subnet-ids: [s1, s2]"), "-/s1 -/s2 ");
  EXPECT_EQ(places("subnet-ids: [s1, s2], availability-zone: a"), "a/s1 a/s2 ");
  EXPECT_EQ(places("availability-zones: [a, b]"), "a/- b/- ");
  for (const char* bad :
       {"subnet-id: s, subnet-ids: [t]", "availability-zone: a, availability-zones: [b]",
        "subnet-id: s, availability-zones: [b]", "subnet-ids: [s], availability-zones: [b]"}) {
    EXPECT_THAT(places(bad), HasSubstr("group of exclusion")) << bad;
  }
  EXPECT_THAT(LoadError({.label = ", cloud-image: c, instance-types: []"}), HasSubstr("at least one entry"));
  EXPECT_THAT(Verdict({.label = ", instance-types: [a], instance-type: b"}), HasSubstr("group of exclusion"));
}

TEST_F(AwsConfigTest, Defaults) {
  const AwsPool& pool = PoolOf({.label = kUsual});
  EXPECT_EQ(loaded_->rate, 2);
  EXPECT_EQ(loaded_->boot_timeout, std::chrono::seconds(180));
  EXPECT_EQ(loaded_->launch_timeout, std::chrono::seconds(3600));
  EXPECT_EQ(loaded_->launch_retries, 3);
  EXPECT_EQ(loaded_->image_format, "raw");
  EXPECT_TRUE(pool.public_ipv4);
  EXPECT_FALSE(pool.public_ipv6);
  EXPECT_FALSE(pool.use_internal_ip);
  const auto& label = driver::cloud::As<AwsLabel>(*pool.labels.at(LabelName("l")));
  EXPECT_TRUE(label.host_key_checking);
  EXPECT_EQ(label.connection.username, "u");
  EXPECT_EQ(label.connection.python_path, "auto");
  EXPECT_EQ(label.fault, "");
  EXPECT_THAT(config_.warnings, IsEmpty());
}

TEST_F(AwsConfigTest, PoolsTakeFromTheProviderWhatTheyDoNotHave) {
  const std::string provider =
      "max-servers: 5\nmax-cores: 20\nmax-resources: {L-1: 1, L-2: 2}\nuse-internal-ip: true\n"
      "host-key-checking: false\npublic-ipv4: false\npublic-ipv6: true";
  const AwsPool& pool =
      PoolOf({.label = kUsual, .pool = ", max-ram: 100, max-resources: {L-2: 3}", .provider = provider});
  EXPECT_EQ(pool.max_servers, 5);
  EXPECT_EQ(pool.limits, (Resources{{"cores", 20}, {"ram", 100}, {"L-1", 1}, {"L-2", 3}}));
  EXPECT_TRUE(pool.use_internal_ip);
  EXPECT_FALSE(pool.labels.at(LabelName("l"))->host_key_checking);
  EXPECT_FALSE(pool.public_ipv4);
  EXPECT_TRUE(pool.public_ipv6);
}

// AWS-12
TEST_F(AwsConfigTest, TheOldKeyForPublicAddressesWins) {
  EXPECT_FALSE(PoolOf({.pool = ", public-ip-address: false, public-ipv4: true"}).public_ipv4);
  EXPECT_TRUE(PoolOf({.pool = ", public-ip-address: true, public-ipv4: false"}).public_ipv4);
}

TEST_F(AwsConfigTest, LabelsOfWhichNoNodeCanBeMade) {
  EXPECT_EQ(LabelWith("").fault, "it needs cloud-image or diskimage");
  EXPECT_EQ(LabelWith(", cloud-image: c").fault, "it needs instance-type");
  EXPECT_EQ(
      LabelWith(", cloud-image: c, fleet: {instance-types: [], allocation-strategy: prioritized}").fault,
      "its fleet has no instance-types");
  EXPECT_EQ(LabelWith(kUsual).fault, "");
}

// AWS-14
TEST_F(AwsConfigTest, TagsAreTextAndWithinTheLimits) {
  const AwsLabel& label = LabelWith(
      ", tags: {a: true, b: null, c: 7, d: 1.50, e: text, 'aws:x': y}, dynamic-tags: {f: '{request.id}'}");
  using Tags = std::map<std::string, std::string>;
  EXPECT_EQ(label.tags, (Tags{{"a", "True"}, {"b", "None"}, {"c", "7"}, {"d", "1.50"}, {"e", "text"}}));
  EXPECT_EQ(label.dynamic_tags, (Tags{{"f", "{request.id}"}}));
  EXPECT_EQ(config_.warnings.size(), 5u);
  config_.warnings.clear();
  std::string many = ", tags: {";
  for (int i = 0; i < 47; ++i) many += "k" + std::to_string(i) + ": v, ";
  LabelWith(many + "}");
  EXPECT_THAT(config_.warnings, ElementsAre(HasSubstr("more than the 50 tags")));
}

TEST_F(AwsConfigTest, APoolWithoutSubnetNeedsADefaultVpc) {
  Load({.pool = ", subnet-id: null"});
  EXPECT_THAT(config_.warnings, ElementsAre(HasSubstr("default VPC")));
}

TEST_F(AwsConfigTest, DiskImages) {
  const AwsPool& pool = PoolOf({.label = ", diskimage: d, instance-type: t",
                                .provider = "image-format: vhd\ndiskimages: [{name: d, pause: true}]"});
  EXPECT_TRUE(loaded_->diskimages.at(ImageName("d"))->is_paused);
  EXPECT_THAT(config_.diskimages.at(ImageName("d")).formats, ElementsAre("vhd"));
  EXPECT_THAT(config_.warnings, ElementsAre(HasSubstr("snapshot needs object-storage")));
  EXPECT_EQ(pool.labels.at(LabelName("l"))->connection.username, "cloud-user");
}

// AWS-63
TEST_F(AwsConfigTest, HowFilesBecomeImages) {
  PoolOf({.label = ", diskimage: d, instance-type: t",
          .provider = "image-import-timeout: 90\nobject-storage: {bucket-name: b}\n"
                      "diskimages: [{name: d, import-method: image, architecture: arm64, ena-support: false, "
                      "volume-size: 20, iops: 4000, tags: {a: true}}]"});
  EXPECT_TRUE(loaded_->manages_images);
  EXPECT_EQ(loaded_->bucket, "b");
  EXPECT_EQ(loaded_->import_timeout, std::chrono::seconds(90));
  const auto& image = driver::cloud::As<AwsDiskImage>(*loaded_->diskimages.at(ImageName("d")));
  EXPECT_EQ(image.import_method, ImportMethod::kImage);
  EXPECT_EQ(image.architecture, "arm64");
  EXPECT_FALSE(image.ena_support || image.wants_imdsv2);
  EXPECT_EQ(image.volume.size, 20);
  EXPECT_EQ(image.volume.type, "gp3");
  EXPECT_EQ(image.volume.iops, 4000);
  EXPECT_EQ(image.meta.at("a"), "True");
  EXPECT_THAT(config_.warnings, ElementsAre(HasSubstr("is not text")));
}

// AWS-62
TEST_F(AwsConfigTest, ImagesThatWantVersionTwoOfTheMetadataService) {
  PoolOf({.label = ", diskimage: d, instance-type: t",
          .provider = "diskimages: [{name: d, import-method: ebs-direct, imds-support: v2.0}]"});
  EXPECT_TRUE(driver::cloud::As<AwsDiskImage>(*loaded_->diskimages.at(ImageName("d"))).wants_imdsv2);
  EXPECT_THAT(config_.warnings, IsEmpty());
}

// AWS-81
TEST_F(AwsConfigTest, PricesOfTypes) {
  auto prices = [](const std::string& text) { return Parts{.label = kUsual, .provider = "prices: " + text}; };
  EXPECT_EQ(Verdict(prices("{t3.medium: 0.04, m5.large: {on-demand: 1, spot: 0.5}}")), "");
  EXPECT_NE(Verdict(prices("{t3.medium: cheap}")), "");
  EXPECT_NE(Verdict(prices("{t3.medium: {reserved: 1}}")), "");
  auto config = Load(prices("{t3.medium: 0.04, m5.large: {on-demand: 1, spot: 0.5}}"));
  AwsLabel label;
  EXPECT_EQ(PriceOf(*config, label, "t3.medium"), 0.04);
  EXPECT_EQ(PriceOf(*config, label, "m5.large"), 1);
  EXPECT_EQ(PriceOf(*config, label, "c5.large"), std::nullopt);
  label.use_spot = true;
  EXPECT_EQ(PriceOf(*config, label, "t3.medium"), std::nullopt) << "a number is the price on demand";
  EXPECT_EQ(PriceOf(*config, label, "m5.large"), 0.5);
  label.dedicated_host = true;
  EXPECT_EQ(PriceOf(*config, label, "m5.large"), std::nullopt) << "the host is paid for";
  EXPECT_THAT(config_.warnings, ::testing::Contains(HasSubstr("no label has the instance type m5.large")));
  for (const char* odd : {"{t3.medium: -1}", "{t3.medium: .nan}", "{t3.medium: {spot: cheap}}"}) {
    EXPECT_THAT(LoadError(prices(odd)), HasSubstr("t3.medium: expected a price per hour")) << odd;
  }
}

}  // namespace
}  // namespace nodepool::drivers::aws
