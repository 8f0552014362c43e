#include "drivers/openstack/config/cloud_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/testing/test_environment.h"

namespace nodepool::drivers::openstack {

// clouds.yaml and related files.

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClouds = R"(
clouds:
  main:
    auth: {auth_url: "https://{region_name}.example/v3", username: ci, password: "0123{x}", project_name: 0123,
           user_domain_name: Default, project-domain-name: Default}
    regions: [north, {name: south, values: {image_format: raw, auth: {username: southerner}}}]
    networks: [{name: net, routes_externally: true, nat_destination: true}]
  bare: {auth_url: "http://x/v3", username: u, password: p, tenant_name: t, domain_name: d, insecure: true,
         endpoint_type: internalURL, compute_endpoint_override: "http://c/v2.1", has_network: false,
         api_timeout: 12, floating_ip_source: None, image_use_import: true, prefer-ipv6: false}
  appcred: {auth_type: v3applicationcredential,
            auth: {auth_url: "http://x/v3", application_credential_id: id, application_credential_secret: s}}
  vendor: {profile: shop, auth: {username: u, password: p}}
  odd: {auth_type: v3oidcpassword, auth: {auth_url: "http://x"}}
  url: {profile: "https://shop.example", auth: {username: u, password: p}}
  rackspace: {auth_url: "http://x/v3", username: u, password: p, floating_ip_source: nova, image_api_use_tasks: true}
  tuned: {auth_url: "http://x/v3", username: u, password: p, image_status_code_retries: 2,
          volumev3_status_code_retries: 0, network_status_code_retries: null, compute_default_microversion: 2.90,
          volume_api_version: 3.59, network_api_version: 2.0, image_api_version: 2.9}
  mistuned: {auth_url: "http://x/v3", username: u, password: p, image_status_code_retries: many}
  latest: {auth_url: "http://x/v3", username: u, password: p, compute_default_microversion: latest}
)";

class CloudConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    variables_["OS_CLIENT_CONFIG_FILE"] = Write("clouds.yaml", kClouds);
    variables_["HOME"] = folder_;
    variables_["XDG_CONFIG_HOME"] = folder_;
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  CloudConfig Resolve(std::optional<std::string> name, std::optional<std::string> region = std::nullopt) {
    return ResolveCloud(ReadCloudFiles(variables_), name, region);
  }
  std::string Fault(std::optional<std::string> name, std::optional<std::string> region = std::nullopt) {
    try {
      Resolve(name, region);
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "";
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  Variables variables_;
};

// O-sdk-config
TEST_F(CloudConfigTest, RegionsAndWhatTheyChange) {
  CloudConfig north = Resolve("main");
  EXPECT_FALSE(north.imports_images);  // D-55
  EXPECT_EQ(north.name, "main");
  EXPECT_EQ(north.region, "north");
  EXPECT_EQ(north.credentials.Get("auth_url"), "https://north.example/v3");
  EXPECT_EQ(north.credentials.Get("password"), "0123{x}") << "it is not expanded";
  EXPECT_EQ(north.credentials.Get("project_name"), "0123") << "numbers are text";
  EXPECT_EQ(north.image_format, "qcow2");
  EXPECT_TRUE(north.tls.verifies_peer);
  ASSERT_EQ(north.networks.size(), 1u);
  EXPECT_EQ(north.networks[0].routes_ipv6_externally, true);
  EXPECT_TRUE(north.networks[0].is_nat_destination);
  CloudConfig south = Resolve("main", "south");
  EXPECT_EQ(south.image_format, "raw");
  EXPECT_EQ(south.credentials.Get("username"), "southerner");
  EXPECT_EQ(south.credentials.Get("password"), "0123{x}");
  EXPECT_THAT(Fault("main", "west"), HasSubstr("west is not a valid region name for cloud main"));
  EXPECT_NE(north.fingerprint, south.fingerprint);
}

TEST_F(CloudConfigTest, OldSpellings) {
  CloudConfig cloud = Resolve("bare");
  EXPECT_EQ(cloud.credentials.Get("project_name"), "t");
  EXPECT_EQ(cloud.credentials.Get("user_domain_name"), "d");
  EXPECT_EQ(cloud.credentials.Get("project_domain_name"), "d");
  EXPECT_FALSE(cloud.tls.verifies_peer);
  EXPECT_THAT(cloud.interfaces, ElementsAre("internal"));
  EXPECT_EQ(cloud.Of(Service::kCompute).endpoint_override, "http://c/v2.1");
  EXPECT_FALSE(cloud.Of(Service::kNetwork).exists);
  EXPECT_EQ(cloud.api_timeout, std::chrono::seconds(12));
  EXPECT_FALSE(cloud.has_floating_ips);
  EXPECT_TRUE(cloud.imports_images);
}

// Settings of obsolete services do not invalidate a configuration.
TEST_F(CloudConfigTest, ObsoleteSettingsAreWarnedOf) {
  log::Capture capture;
  CloudConfig cloud = Resolve("rackspace");
  EXPECT_TRUE(cloud.has_floating_ips) << "neutron has them";
  EXPECT_FALSE(cloud.imports_images);
  EXPECT_EQ(capture.Count("Cloud rackspace has floating_ip_source nova"), 1);
  EXPECT_EQ(capture.Count("Cloud rackspace has image_api_use_tasks"), 1);
}

TEST_F(CloudConfigTest, RetriesAndMicroversionOfAService) {
  CloudConfig cloud = Resolve("tuned");
  EXPECT_EQ(cloud.Of(Service::kImage).status_code_retries, 2);
  EXPECT_EQ(cloud.Of(Service::kBlockStorage).status_code_retries, 0);
  EXPECT_EQ(cloud.Of(Service::kNetwork).status_code_retries, std::nullopt);
  EXPECT_EQ(cloud.Of(Service::kCompute).default_microversion, (VersionNumber{2, 90}));
  EXPECT_EQ(cloud.Of(Service::kBlockStorage).default_microversion, (VersionNumber{3, 59})) << "implied";
  EXPECT_EQ(cloud.Of(Service::kNetwork).default_microversion, VersionNumber());
  EXPECT_EQ(cloud.Of(Service::kImage).default_microversion, VersionNumber()) << "glance has none";
  EXPECT_THAT(Fault("mistuned"), HasSubstr("image_status_code_retries must be a number"));
  EXPECT_THAT(Fault("latest"), HasSubstr("compute_default_microversion must be a version such as 2.90"));
}

TEST_F(CloudConfigTest, TheSecureFileOverrides) {
  variables_["OS_CLIENT_SECURE_FILE"] = Write("secure.yaml", "clouds: {main: {auth: {password: better}}}");
  CloudConfig cloud = Resolve("main");
  EXPECT_EQ(cloud.credentials.Get("password"), "better");
  EXPECT_EQ(cloud.credentials.Get("username"), "ci");
}

TEST_F(CloudConfigTest, FilesAreFoundInTheUsualPlaces) {
  variables_.erase("OS_CLIENT_CONFIG_FILE");
  Write("openstack/clouds.yml", "clouds: {only: {auth: {auth_url: u, username: n, password: p}}}");
  EXPECT_EQ(Resolve(std::nullopt).name, "only");
  Write("openstack/clouds.yaml", "clouds: [");
  EXPECT_THAT(Fault(std::nullopt), AllOf(HasSubstr("openstack/clouds.yaml"), HasSubstr("line 1")));
}

TEST_F(CloudConfigTest, CloudsOfTheEnvironment) {
  variables_["OS_AUTH_URL"] = "http://env/v3";
  variables_["OS_USERNAME"] = "me";
  variables_["OS_PASSWORD"] = "p";
  EXPECT_EQ(Resolve(std::nullopt).credentials.Get("auth_url"), "http://env/v3");
  EXPECT_EQ(Resolve("main").credentials.Get("username"), "ci") << "a named cloud is not touched";
  variables_["OS_CLOUD"] = "bare";
  EXPECT_EQ(Resolve(std::nullopt).name, "bare");
  variables_["OS_CLOUD_NAME"] = "main";
  EXPECT_THAT(Fault("main"), HasSubstr("OS_CLOUD_NAME"));
}

TEST_F(CloudConfigTest, ProfilesComeFromAFile) {
  EXPECT_THAT(Fault("vendor"), HasSubstr("auth_url"));
  Write("openstack/clouds-public.yaml",
        "public-clouds: {shop: {auth: {auth_url: 'http://shop'}, regions: [a, b], image_format: raw}}");
  CloudConfig cloud = Resolve("vendor", "b");
  EXPECT_EQ(cloud.credentials.Get("auth_url"), "http://shop");
  EXPECT_EQ(cloud.credentials.Get("username"), "u");
  EXPECT_EQ(cloud.image_format, "raw");
  EXPECT_THAT(Fault("url"), HasSubstr("a profile that is a URL is not supported"));
}

// D-97
TEST_F(CloudConfigTest, WaysToAuthenticate) {
  EXPECT_EQ(boost::json::serialize(TokenRequest(Resolve("appcred").credentials)),
            R"({"auth":{"identity":{"methods":["application_credential"],)"
            R"("application_credential":{"secret":"s","id":"id"}}}})");
  EXPECT_EQ(boost::json::serialize(TokenRequest(Resolve("bare").credentials)),
            R"({"auth":{"identity":{"methods":["password"],"password":{"user":{"name":"u",)"
            R"("domain":{"name":"d"},"password":"p"}}},)"
            R"("scope":{"project":{"name":"t","domain":{"name":"d"}}}}})");
  EXPECT_THAT(Fault("odd"),
              AllOf(HasSubstr("v3oidcpassword is not supported"),
                    HasSubstr("password, v3password, token, v3token, v3applicationcredential, none")));
}

TEST_F(CloudConfigTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Fault("nowhere"), AllOf(HasSubstr("there is no cloud nowhere"), HasSubstr("clouds.yaml")));
  variables_["OS_CLIENT_CONFIG_FILE"] =
      Write("other.yaml", "clouds: {a: {auth: {auth_url: u, username: n}}}");
  EXPECT_THAT(Fault("a"), HasSubstr("auth needs password"));
}

}  // namespace

}  // namespace nodepool::drivers::openstack
