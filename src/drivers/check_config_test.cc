// What `nodepool config-validate` finds in configurations with which no launcher starts, or not as meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "base/testing/test_environment.h"
#include "driver/loading/config_follower.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/schemas/known_drivers.h"
#include "drivers/static/static_driver.h"

namespace nodepool::drivers {
namespace {

using config::Finding;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CheckConfigTest : public ::testing::Test {
 protected:
  CheckConfigTest() {
    clouds_ = Write("clouds.yaml",
                    "clouds: {vendor: {regions: [north], auth: {auth_url: 'http://x/v3', username: u, "
                    "password: p, project_name: n}}}");
    UseClouds(clouds_);
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  void UseClouds(const std::string& file) {
    drivers_ = driver::Registry();
    drivers_.Add(std::make_unique<FakeDriver>());
    drivers_.Add(std::make_unique<OpenstackDriver>(openstack::Variables{
        {"OS_CLIENT_CONFIG_FILE", file}, {"HOME", folder_}, {"XDG_CONFIG_DIRS", folder_}}));
    drivers_.Add(std::make_unique<StaticDriver>());
  }

  // `text` goes on in flow or block style below a ZooKeeper server and two labels.
  driver::ConfigCheck Check(const std::string& text, const std::string& zookeeper = "{host: localhost}") {
    path_ = Write("nodepool.yaml", "zookeeper-servers: [" + zookeeper +
                                       "]\n"
                                       "labels: [{name: small}, {name: large}, {name: right}]\n" +
                                       text);
    return driver::CheckConfig(path_, drivers_, driver::LoadOptionsFor(drivers_, KnownDriverSchema));
  }

  static std::vector<std::string> Messages(const driver::ConfigCheck& check, Finding::Level level) {
    std::vector<std::string> messages;
    for (const Finding& finding : check.report.findings) {
      if (finding.level == level) messages.push_back(finding.message);
    }
    return messages;
  }
  static std::vector<std::string> Errors(const driver::ConfigCheck& check) {
    return Messages(check, Finding::Level::kError);
  }
  static std::vector<std::string> Warnings(const driver::ConfigCheck& check) {
    EXPECT_EQ(check.report.exit_status(), 0) << "the Python validator takes the file";
    return Messages(check, Finding::Level::kWarning);
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  std::string clouds_;
  std::string path_;
  driver::Registry drivers_;
};

TEST_F(CheckConfigTest, AGoodFileIsSummedUp) {
  driver::ConfigCheck check = Check(R"(
providers:
- {name: hosts, driver: static, pools: [{name: main, nodes: [{name: h, labels: small}]}]}
)");
  EXPECT_THAT(check.report.findings, IsEmpty());
  EXPECT_TRUE(check.can_start);
  EXPECT_EQ(driver::Summary(check, "nodepool.yaml"), "nodepool.yaml is good: 1 provider, 3 labels, 0 images");
}

TEST_F(CheckConfigTest, UnknownImagesAreNamedEachWithItsPlace) {
  driver::ConfigCheck check = Check(R"(
providers:
- name: vendor
  cloud: vendor
  cloud-images: [{name: debian}]
  pools:
  - name: main
    labels:
    - {name: small, cloud-image: debain, min-ram: 1}
    - {name: right, cloud-image: debian, min-ram: 1}
    - {name: large, cloud-image: debiam, min-ram: 1}
- name: fake
  driver: fake
  cloud: simulated
  pools: [{name: main, labels: [{name: small, diskimage: nothing, min-ram: 1}]}]
)");
  EXPECT_THAT(Errors(check),
              ElementsAre(AllOf(StartsWith(path_ + ": line 11, column 34: "), HasSubstr("pools[0].labels[0]"),
                                HasSubstr("'debain' of label small is not one of the cloud-images")),
                          AllOf(StartsWith(path_ + ": line 13, column 34: "), HasSubstr("pools[0].labels[2]"),
                                HasSubstr("'debiam' of label large is not one of the cloud-images")),
                          AllOf(StartsWith(path_ + ": line 17, "),
                                HasSubstr("'nothing' is not one of the top-level"))));
  EXPECT_FALSE(check.can_start);
  EXPECT_EQ(driver::Summary(check, "nodepool.yaml"),
            "nodepool.yaml has 3 errors; the launcher does not start with it");
  EXPECT_EQ(check.report.exit_status(), 1);
}

TEST_F(CheckConfigTest, CloudsYamlIsMissing) {
  UseClouds("/no/such/clouds.yaml");
  driver::ConfigCheck check = Check("providers: [{name: p, cloud: vendor}]");
  EXPECT_THAT(
      Warnings(check),
      ElementsAre(AllOf(HasSubstr("line 3, column 30"), HasSubstr("there is no cloud vendor"),
                        HasSubstr("OS_CLIENT_CONFIG_FILE names /no/such/clouds.yaml, which cannot be read"),
                        HasSubstr(folder_ + "/.config/openstack"), HasSubstr("/etc/openstack"))));
  EXPECT_TRUE(check.can_start) << "with the other providers";
  EXPECT_EQ(driver::Summary(check, "n.yaml"), "n.yaml has 1 warning; the launcher starts with it");
}

TEST_F(CheckConfigTest, CloudsAndRegionsThatDoNotExist) {
  driver::ConfigCheck check =
      Check("providers: [{name: p, cloud: vendro}, {name: q, cloud: vendor, region-name: south}]");
  EXPECT_THAT(Warnings(check),
              ElementsAre(HasSubstr("there is no cloud vendro: " + clouds_ + " does not have it"),
                          HasSubstr("south is not a valid region name for cloud vendor")));
}

TEST_F(CheckConfigTest, TlsFilesThatAreMissing) {
  std::string file = Write("pem", "x");
  driver::ConfigCheck check = Check("zookeeper-tls: {cert: /no/cert.pem, key: " + file +
                                    ", ca: /no/ca.pem}\nproviders: [{name: p, cloud: nowhere}]\n");
  EXPECT_THAT(Warnings(check),
              ElementsAre(HasSubstr("zookeeper-tls.cert: /no/cert.pem cannot be read: No such file"),
                          HasSubstr("zookeeper-tls.ca: /no/ca.pem cannot be read: No such file"),
                          HasSubstr("there is no cloud nowhere")));
  EXPECT_FALSE(check.can_start);
  EXPECT_EQ(driver::Summary(check, "n.yaml"),
            "n.yaml has 3 warnings; the launcher starts with it when the warnings have been dealt with");
}

TEST_F(CheckConfigTest, AStaticHostThatIsListedTwice) {
  driver::ConfigCheck check = Check(R"(
providers:
- name: hosts
  driver: static
  pools:
  - {name: one, nodes: [{name: h, labels: small}]}
  - {name: two, nodes: [{name: h, labels: large}, {name: h, username: other, labels: large}]}
)");
  EXPECT_THAT(Warnings(check),
              ElementsAre(AllOf(StartsWith(path_ + ": line 9, column 32: "),
                                HasSubstr("host zuul@h:22 is listed again and not used: line 8"))));
  EXPECT_TRUE(check.can_start);
}

TEST_F(CheckConfigTest, APoolThatCannotBeAnnounced) {
  std::string labels, offers;
  for (int i = 0; i < 6000; ++i) {
    std::string name = fmt::format("label-{}-{}", i, std::string(180, 'x'));
    labels += fmt::format("- {{name: {}}}\n", name);
    offers += fmt::format("    - {{name: {}, cloud-image: i, min-ram: 1}}\n", name);
  }
  path_ = Write("nodepool.yaml", "zookeeper-servers: [{host: localhost}]\nlabels:\n" + labels +
                                     "providers:\n- name: fake\n  driver: fake\n  cloud: c\n"
                                     "  cloud-images: [{name: i}]\n  pools:\n  - name: main\n    labels:\n" +
                                     offers);
  driver::ConfigCheck check =
      driver::CheckConfig(path_, drivers_, driver::LoadOptionsFor(drivers_, KnownDriverSchema));
  EXPECT_THAT(Errors(check),
              ElementsAre(AllOf(HasSubstr("line 6009, column 5: pool main of provider fake announces "),
                                HasSubstr("6000 labels"), HasSubstr("use several pools"))));
}

TEST_F(CheckConfigTest, AChrootThatZooKeeperDoesNotTake) {
  driver::ConfigCheck check = Check("providers: []", "{host: localhost, chroot: /a//b}");
  EXPECT_THAT(Errors(check), ElementsAre(AllOf(HasSubstr("line 1, column "), HasSubstr("empty component"))));
  EXPECT_EQ(driver::Summary(check, "n.yaml"), "n.yaml has 1 error; the launcher does not start with it");
}

TEST_F(CheckConfigTest, ZooKeeperElsewhereWithoutTls) {
  driver::ConfigCheck check = Check("providers: []", "{host: zk1.example.org}");
  EXPECT_THAT(Warnings(check),
              ElementsAre(AllOf(HasSubstr("TLS connection to ZooKeeper is required"),
                                HasSubstr("zookeeper-insecure: true to reach zk1.example.org"))));
}

TEST_F(CheckConfigTest, ANameThatBeginsWithFakeHidesADriver) {
  driver::ConfigCheck check = Check("providers: [{name: fake-cloud, driver: fakee, cloud: c}]");
  EXPECT_THAT(
      Warnings(check),
      ElementsAre(AllOf(HasSubstr("line 3, column 13: provider fake-cloud uses the fake driver because"),
                        HasSubstr("its setting driver: fakee has no effect and names no driver"),
                        HasSubstr("did you mean 'fake'?"))));
  EXPECT_TRUE(check.can_start);
  EXPECT_EQ(driver::Summary(check, "n.yaml"), "n.yaml has 1 warning; the launcher starts with it");
}

TEST_F(CheckConfigTest, TwoProvidersOfOneName) {
  driver::ConfigCheck check =
      Check("providers: [{name: a, driver: static, pools: []}, {name: a, driver: static, pools: []}]");
  EXPECT_THAT(Errors(check),
              ElementsAre(HasSubstr("provider a is defined again; what line 3 defines has no effect")));
  EXPECT_EQ(check.report.exit_status(), 1);
}

TEST_F(CheckConfigTest, ADriverThatThisProgramLacks) {  // D-54
  driver::ConfigCheck check = Check("providers: [{name: p, driver: azure}]");
  EXPECT_THAT(Warnings(check),
              ElementsAre(HasSubstr("not all settings of driver azure are known here"),
                          HasSubstr("provider p is skipped: this program has no driver azure")));
  EXPECT_TRUE(check.can_start);
}

TEST_F(CheckConfigTest, WhatOnlyTheDaemonsRefuse) {
  driver::ConfigCheck check = Check(
      "webapp: {tls: {cert: c}}\nzookeeper-timeout: 0\nembedded-zookeeper: {tls: {key: k}}\n"
      "diskimages: [{name: a, parent: b}, {name: b, parent: a}]\n");
  EXPECT_THAT(Errors(check), ElementsAre(HasSubstr("webapp.tls: expected cert and key"),
                                         HasSubstr("zookeeper-timeout: expected a number of seconds above 0"),
                                         HasSubstr("embedded-zookeeper.tls"), HasSubstr("diskimages")));
}

TEST_F(CheckConfigTest, BoundsArePartOfTheStrictCheck) {
  driver::ConfigCheck check = Check(
      "webapp: {port: 70000}\nbuild-workers: -1\nembedded-zookeeper: {port: 0}\n"
      "graceful-stop-timeout: -1\n");
  EXPECT_THAT(Errors(check),
              ElementsAre(HasSubstr("expected a number from 0 to 65535 @ data['webapp']['port'] "
                                    "(line 3, column 16: found an integer '70000')"),
                          HasSubstr("expected a number from 0 to 1000 @ data['build-workers']"),
                          HasSubstr("data['embedded-zookeeper']['port']"),
                          HasSubstr("expected a number of at least 0")));
}

TEST_F(CheckConfigTest, AnErrorOfTheStrictCheckComesFirst) {
  driver::ConfigCheck check = Check("providers: [{name: p, cloud: nowhere, no-such-key: 1}]");
  EXPECT_EQ(check.report.exit_status(), 1);
  EXPECT_FALSE(check.can_start);
  EXPECT_EQ(driver::Summary(check, "n.yaml"), "n.yaml has 1 error");
}

TEST_F(CheckConfigTest, HintsAreNoWarnings) {
  path_ = Write("nodepool.yaml", "zookeeper-timeout: 10\ndiskimages: [{name: a}]\n");
  driver::ConfigCheck check =
      driver::CheckConfig(path_, drivers_, driver::LoadOptionsFor(drivers_, KnownDriverSchema));
  EXPECT_THAT(Messages(check, Finding::Level::kHint),
              ElementsAre(HasSubstr("write 10.0"), HasSubstr("only `nodepool standalone` starts"),
                          HasSubstr("there is no images-dir")));
  driver::MakeStrict(check.report);
  EXPECT_EQ(driver::Summary(check, "n.yaml"), "n.yaml is good: 0 providers, 0 labels, 1 image");
}

}  // namespace
}  // namespace nodepool::drivers
