#include "config/config_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nodepool::config {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

const Schema* OnlyTestDrivers(std::string_view name) {
  static const Schema known = Schema::Map({Setting("pools", Schema::List(Schema::Any()), "")});
  static const Schema unknown = Schema::Any();
  if (name == "openstack" || name == "static" || name == "fake") return &known;
  return name == "azure" ? &unknown : nullptr;
}

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() {
    std::string pattern = ::testing::TempDir() + "/loader_test_XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~LoaderTest() override { std::filesystem::remove_all(dir_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::string path = dir_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  Expected<Config> Load(const std::string& text, std::optional<std::string> secure = std::nullopt) {
    LoadOptions options{.drivers = OnlyTestDrivers};
    if (secure) options.secure_path = Write("secure.yaml", *secure);
    return config::Load(Write("nodepool.yaml", text), options);
  }
  Config MustLoad(const std::string& text, std::optional<std::string> secure = std::nullopt) {
    Expected<Config> config = Load(text, secure);
    if (!config) throw config.error();
    return *config;
  }
  // Without the path in front.
  std::string ErrorOf(const std::string& text, std::optional<std::string> secure = std::nullopt) {
    Expected<Config> config = Load(text, secure);
    return config ? "no error" : config.error().message().substr(dir_.size() + 1);
  }

  std::string dir_;
};

TEST_F(LoaderTest, AnEmptyMappingGivesTheDefaults) {  // D-55
  Config config = MustLoad("{}");
  EXPECT_EQ(config.webapp.port, 8005);
  EXPECT_EQ(config.webapp.listen_address, "0.0.0.0");
  EXPECT_EQ(config.build_log_dir, "/var/log/nodepool/builds");
  EXPECT_EQ(config.build_log_retention, 7);
  EXPECT_EQ(config.max_hold_age, std::nullopt);
  EXPECT_EQ(config.zookeeper.timeout, std::chrono::seconds(10));
  EXPECT_THAT(config.warnings, ::testing::IsEmpty());
}

// D-55: settings that a Python launcher would refuse are optional, and without them everything is
// as there.
TEST_F(LoaderTest, AdditionalSettingsAreOptionalAndOff) {
  Config config = MustLoad("{}");
  EXPECT_FALSE(config.zookeeper.insecure);
  EXPECT_FALSE(config.zookeeper.embedded.tls);
  EXPECT_THAT(config.zookeeper.servers, ::testing::IsEmpty());
  EXPECT_EQ(config.build_workers, std::nullopt);
  EXPECT_EQ(config.upload_workers, std::nullopt);
  EXPECT_EQ(config.graceful_stop, std::chrono::seconds(30));
  EXPECT_THAT(config.zmq_publishers, ::testing::IsEmpty());
}

// configuration.md 3: absent, null and empty sections mean the same.
TEST_F(LoaderTest, NullSectionsAreAbsentSections) {
  Config config = MustLoad(
      "webapp:\nzookeeper-servers:\nzookeeper-tls: {}\ndiskimages: []\nlabels: {}\nproviders:\n"
      "tenant-resource-limits:\nbuild-log-dir: ''\nmax-hold-age: 0\n");
  EXPECT_EQ(config.webapp.port, 8005);
  EXPECT_EQ(config.build_log_dir, "/var/log/nodepool/builds");
  EXPECT_EQ(config.zookeeper.tls, std::nullopt);
}

TEST_F(LoaderTest, ReadsTheTopLevel) {
  Config config = MustLoad(
      "webapp: {port: '80', listen_address: '::'}\nelements-dir: /e\nimages-dir: /i\nbuild-log-dir: /l\n"
      "build-log-retention: yes\nmax-hold-age: 60\nzookeeper-timeout: '20'\nzmq-publishers: [tcp://j:1]\n"
      "build-workers: 0\nupload-workers: 9\ngraceful-stop-timeout: 2.5\n");
  EXPECT_EQ(config.webapp.port, 80);
  EXPECT_EQ(config.elements_dir, "/e");
  EXPECT_EQ(config.images_dir, "/i");
  EXPECT_EQ(config.build_log_dir, "/l");
  EXPECT_EQ(config.build_log_retention, 1);  // a boolean is a number, configuration.17.3
  EXPECT_EQ(config.max_hold_age, std::chrono::seconds(60));
  EXPECT_EQ(config.zookeeper.timeout, std::chrono::seconds(20));
  EXPECT_EQ(config.build_workers, 0);
  EXPECT_EQ(config.upload_workers, 9);
  EXPECT_EQ(config.graceful_stop, std::chrono::milliseconds(2500));  // D-24
  EXPECT_THAT(ErrorOf("graceful-stop-timeout: -1"), HasSubstr("expected a number of at least 0"));
  EXPECT_THAT(ErrorOf("build-workers: -1"), HasSubstr("expected a number from 0 to 1000"));
  EXPECT_THAT(config.zmq_publishers, ElementsAre("tcp://j:1"));  // D-52
}

TEST_F(LoaderTest, TheFileMustHoldAMapping) {
  EXPECT_THAT(ErrorOf(""), "nodepool.yaml: the file is empty; expected a mapping");
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("expected a mapping, found a list"));
  EXPECT_THAT(ErrorOf("a: ["), StartsWith("nodepool.yaml: line "));
  EXPECT_THAT(config::Load(dir_ + "/none", {}).error().message(), HasSubstr("/none: cannot be read"));
}

TEST_F(LoaderTest, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(
      ErrorOf("labels:\n- name: a\n  min-ready: many\n"),
      "nodepool.yaml: line 3, column 14: labels[0].min-ready: expected an integer, found a string 'many'");
  EXPECT_THAT(ErrorOf("labels:\n- min-ready: 1\n"),
              "nodepool.yaml: line 2, column 3: labels[0].name: is required");
  EXPECT_THAT(ErrorOf("zookeeper-timeout:\n"), HasSubstr("expected a number of seconds above 0"));
  EXPECT_THAT(ErrorOf("zookeeper-timeout: soon\n"), HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf("max-hold-age: [1]\n"), HasSubstr("expected a number, found a list"));
  EXPECT_THAT(ErrorOf("webapp: {port: 70000}\n"), HasSubstr("expected a number from 0 to 65535"));
  EXPECT_THAT(ErrorOf("tenant-resource-limits: [{max-cores: 1}]\n"), HasSubstr("tenant-name: is required"));
}

// D-50, configuration.17.1
TEST_F(LoaderTest, UnknownKeysAreWarningsWithTheNearestSpelling) {
  Config config = MustLoad(
      "lables: []\nlabels:\n- name: a\n  min-raedy: 1\nproviders: [{name: s, driver: static, x: 1}]\n");
  ASSERT_THAT(config.warnings, ::testing::SizeIs(3));
  EXPECT_THAT(config.warnings[0],
              HasSubstr("line 1, column 9: lables is not a known setting and has no effect; did "
                        "you mean 'labels'?"));
  EXPECT_THAT(config.warnings[1], HasSubstr("labels[0].min-raedy is not a known setting"));
  EXPECT_THAT(config.warnings[1], HasSubstr("'min-ready'"));
  EXPECT_THAT(config.warnings[2], HasSubstr("provider s.x is not a known setting"));
}

// D-52
TEST_F(LoaderTest, HistoricKeysAreExplained) {
  Config config = MustLoad("gearman-servers: []\n");
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("through ZooKeeper since version 3")));
}

// D-21
TEST_F(LoaderTest, Labels) {
  Config config = MustLoad(
      "labels: [{name: a, min-ready: -1, max-ready-age: 0}, {name: b, min-ready: 2, max-ready-age: 5}, "
      "{name: a}]");
  EXPECT_EQ(config.labels.at(LabelName("a")).min_ready, 0);
  EXPECT_EQ(config.labels.at(LabelName("a")).max_ready_age, std::nullopt);
  EXPECT_EQ(config.labels.at(LabelName("b")).min_ready, 2);
  EXPECT_EQ(config.labels.at(LabelName("b")).max_ready_age, std::chrono::seconds(5));
}

// D-51
TEST_F(LoaderTest, NamesAreTakenAsTheyAreWritten) {
  Config config =
      MustLoad("labels: [{name: 007}, {name: yes}, {name: 1.10}]\nproviders: [{name: 2, driver: static}]");
  EXPECT_TRUE(config.labels.contains(LabelName("007")));
  EXPECT_TRUE(config.labels.contains(LabelName("yes")));
  EXPECT_TRUE(config.labels.contains(LabelName("1.10")));
  EXPECT_EQ(config.providers.at(0).name, ProviderName("2"));
}

// configuration.17.5
TEST_F(LoaderTest, OfTwoSectionsTheSecondCounts) {
  Config config = MustLoad("labels: [{name: a}]\nlabels: [{name: b}]\n");
  EXPECT_FALSE(config.labels.contains(LabelName("a")));
  EXPECT_TRUE(config.labels.contains(LabelName("b")));
}

TEST_F(LoaderTest, TenantLimits) {
  Config config = MustLoad(
      "tenant-resource-limits:\n- {tenant-name: t, max-cores: 1, max-servers: 2, max-ram: 3, max-volumes: 4, "
      "max-volume-gb: 5, L-1216C47A: 6}\n- {tenant-name: u, max-cores: 1}\n- {tenant-name: u}\n");
  Resources all = {{"cores", 1},   {"instances", 2}, {"ram", 3},
                   {"volumes", 4}, {"volume-gb", 5}, {"L-1216C47A", 6}};
  EXPECT_EQ(config.tenant_limits.at("t"), all);
  EXPECT_THAT(config.tenant_limits.at("u"), ::testing::IsEmpty());
}

// D-02, configuration.17.14
TEST_F(LoaderTest, ServersAndTheirPorts) {
  std::string servers = "zookeeper-servers: [{host: zk1}, {host: '0:0::1', port: 99}, {host: '[fe80::1]'}]\n";
  Config plain = MustLoad(servers);
  ASSERT_THAT(plain.zookeeper.servers, ::testing::SizeIs(3));
  EXPECT_EQ(plain.zookeeper.servers[0].host, "zk1");
  EXPECT_EQ(plain.zookeeper.servers[0].port, 2181);
  EXPECT_EQ(plain.zookeeper.servers[1].host, "::1");
  EXPECT_EQ(plain.zookeeper.servers[1].port, 99);
  EXPECT_EQ(plain.zookeeper.servers[2].host, "fe80::1");
  Config tls = MustLoad(servers + "zookeeper-tls: {cert: c, key: k, ca: a}\n");
  EXPECT_EQ(tls.zookeeper.servers[0].port, 2281);
  EXPECT_THAT(ErrorOf("zookeeper-servers: [{port: 1}]"), HasSubstr("host: is required"));
  EXPECT_THAT(ErrorOf("zookeeper-servers: [{host: x, port: 0}]"),
              HasSubstr("expected a number from 1 to 65535"));
}

// D-01
TEST_F(LoaderTest, OneChrootForAllServers) {
  auto chroot = [this](const std::string& servers) {
    return MustLoad("zookeeper-servers: " + servers).zookeeper.chroot;
  };
  EXPECT_EQ(chroot("[{host: a, chroot: /x}, {host: b, chroot: /x}]"), "/x");
  EXPECT_EQ(chroot("[{host: a}, {host: b, chroot: /x/y/}]"), "/x/y");
  EXPECT_EQ(chroot("[{host: a, chroot: /}]"), "");
  EXPECT_EQ(chroot("[{host: a, chroot: ''}]"), "");
  EXPECT_THAT(ErrorOf("zookeeper-servers: [{host: a, chroot: /x}, {host: b, chroot: /y}]"),
              HasSubstr("differs from"));
  EXPECT_THAT(ErrorOf("zookeeper-servers: [{host: a, chroot: x}]"), HasSubstr("must begin with '/'"));
}

// D-01
TEST_F(LoaderTest, ThePathOfPythonsRecordsWithSeveralServers) {
  auto chroot = [this](const std::string& servers) {
    return MustLoad("zookeeper-servers: " + servers).zookeeper.python_chroot;
  };
  EXPECT_EQ(chroot("[{host: a}, {host: b}]"), "");
  EXPECT_EQ(chroot("[{host: a, chroot: /x/}]"), "");
  EXPECT_EQ(chroot("[{host: a}, {host: b, chroot: /x}]"), "");
  EXPECT_EQ(chroot("[{host: a, chroot: /x}, {host: b, chroot: /x}]"), "/x,b:2281/x");
  EXPECT_EQ(chroot("[{host: a, chroot: /x}, {host: 'fd00::1', port: 7}]"), "/x,[fd00::1]:7");
}

// drivers.md 1.1, D-80, configuration.17.11
TEST_F(LoaderTest, TheDriverOfAProvider) {
  Config config = MustLoad(
      "providers:\n- {name: a, cloud: c}\n- {name: s, driver: static}\n- {name: fakecloud, driver: static}\n"
      "- {name: fake2, driver: fake}\n");
  EXPECT_EQ(config.providers[0].driver, "openstack");
  EXPECT_EQ(config.providers[1].driver, "static");
  EXPECT_EQ(config.providers[2].driver, "fake");
  EXPECT_THAT(
      config.warnings,
      ::testing::Contains(HasSubstr("fakecloud uses the fake driver because its name begins with 'fake'")));
  EXPECT_THAT(config.warnings, ::testing::Not(::testing::Contains(HasSubstr("fake2"))));
  EXPECT_THAT(ErrorOf("providers: [{name: r, driver: runc}]"), HasSubstr("runc: unknown driver"));
  EXPECT_THAT(ErrorOf("providers: [{driver: static}]"), HasSubstr("name: is required"));
}

// D-101
TEST_F(LoaderTest, ImagesWithUnusableNamesAreReported) {
  Config config = MustLoad(
      "diskimages:\n- {name: ../../evil}\n- {name: -o}\n- {name: ..}\n- {name: \"a\\nb\"}\n- {name: "
      "\"a\\x9Bb\"}\n"
      "- {name: /abstract, abstract: true}\n- {name: good..name-1}\n");
  EXPECT_THAT(
      config.warnings,
      ElementsAre(HasSubstr("line 2, column 3: no builder builds the diskimage '../../evil': its name "
                            "contains '/'"),
                  HasSubstr("'-o': its name begins with '-'"),
                  HasSubstr("'..': its name is that of a directory"),
                  HasSubstr("its name contains a control character"),
                  HasSubstr("its name contains a control character")));
  EXPECT_EQ(config.diskimages.size(), 6U) << "as in the Python implementation";
}

// D-54
TEST_F(LoaderTest, SectionsOfDriversWithUnknownKeysAreReported) {
  Config config = MustLoad("providers: [{name: a, driver: azure, anything: 1}]");
  EXPECT_THAT(config.warnings, ElementsAre(HasSubstr("not all settings of driver azure are known")));
}

// configuration.md 9.6
TEST_F(LoaderTest, ALaterProviderOfTheSameNameReplacesTheEarlier) {
  Config config = MustLoad("providers: [{name: a, driver: static}, {name: b, driver: static}, {name: a}]");
  ASSERT_THAT(config.providers, ::testing::SizeIs(2));
  EXPECT_EQ(config.providers[0].driver, "openstack");
  EXPECT_THAT(config.warnings, ::testing::Contains(HasSubstr("provider a is defined again")));
}

// configuration.17.8, LA-71, B-secure-env
TEST_F(LoaderTest, SecureFileReplacesTheConnectionAndAddsVariables) {
  Config config = MustLoad(
      "zookeeper-servers: [{host: main, chroot: /main}]\nzookeeper-tls: {cert: c, key: k, ca: a}\n"
      "diskimages: [{name: p, env-vars: {A: '1', B: '1'}}, {name: q, parent: p}]\n",
      "zookeeper-servers: [{host: secure}]\nzookeeper-tls: {cert: s}\nlabels: 5\n"
      "diskimages: [{name: p, env-vars: {B: '2', C: '2'}}]\n");
  ASSERT_THAT(config.zookeeper.servers, ::testing::SizeIs(1));
  EXPECT_EQ(config.zookeeper.servers[0].host, "secure");
  EXPECT_EQ(config.zookeeper.chroot, "");
  EXPECT_EQ(config.zookeeper.tls->cert, "s");
  EXPECT_EQ(config.zookeeper.tls->key, "");
  EXPECT_THAT(config.diskimages.at(ImageName("p")).env_vars,
              ElementsAre(Pair("A", "1"), Pair("B", "2"), Pair("C", "2")));
  EXPECT_THAT(config.diskimages.at(ImageName("q")).env_vars, ElementsAre(Pair("A", "1"), Pair("B", "1")));
}

// configuration.17.8: what the secure file replaces is not validated.
TEST_F(LoaderTest, OnlyServersInForceHaveToBeValid) {
  std::string bad =
      "zookeeper-servers: [{host: main, chroot: invalid_chroot, port: 0}]\nzookeeper-tls: {cert: c}\n";
  Config config = MustLoad(bad, "zookeeper-servers: [{host: secure}]\n");
  ASSERT_THAT(config.zookeeper.servers, ::testing::SizeIs(1));
  EXPECT_EQ(config.zookeeper.servers[0].host, "secure");
  EXPECT_EQ(config.zookeeper.chroot, "");
  EXPECT_EQ(config.zookeeper.tls->cert, "c") << "the secure file has no TLS files";
  std::string place = "nodepool.yaml: line 1, column ";
  EXPECT_THAT(ErrorOf(bad, "zookeeper-servers: []\n"), StartsWith(place)) << "an empty list replaces nothing";
  EXPECT_THAT(ErrorOf(bad, "{}"), StartsWith(place));
  EXPECT_THAT(ErrorOf("{}", "zookeeper-servers: [{host: secure, chroot: bad}]\n"),
              "secure.yaml: line 1, column 44: zookeeper-servers[0].chroot: must begin with '/'");
}

TEST_F(LoaderTest, AnEmptySecureFileChangesNothing) {
  Config config = MustLoad("zookeeper-servers: [{host: main}]\n", "");
  EXPECT_EQ(config.zookeeper.servers[0].host, "main");
}

TEST_F(LoaderTest, SecureFileErrorsNameTheSecureFile) {
  EXPECT_THAT(ErrorOf("diskimages: [{name: a, abstract: true}]", "diskimages: [{name: a, env-vars: {}}]"),
              "secure.yaml: line 1, column 21: diskimages[0].name: unknown diskimage a");
  EXPECT_THAT(ErrorOf("diskimages: [{name: a}]", "diskimages: [{name: a}]"),
              HasSubstr("env-vars: is required"));
  EXPECT_THAT(ErrorOf("{}", "diskimages: [{env-vars: {}}]"), HasSubstr("name: is required"));
  LoadOptions options{.secure_path = dir_ + "/none", .drivers = OnlyTestDrivers};
  EXPECT_THAT(config::Load(Write("nodepool.yaml", "{}"), options).error().message(),
              StartsWith(dir_ + "/none: "));
}

// configuration.17.4
TEST_F(LoaderTest, VariablesAreSubstitutedInBothFiles) {
  LoadOptions options{.secure_path = Write("secure.yaml", "zookeeper-servers: [{host: %(NODEPOOL_HOST)}]"),
                      .drivers = OnlyTestDrivers,
                      .environment = [](std::string_view name) -> std::optional<std::string> {
                        if (name == "NODEPOOL_HOST") return "h";
                        if (name == "NODEPOOL_PORT") return "81";
                        return std::nullopt;
                      }};
  Expected<Config> config = config::Load(Write("nodepool.yaml", "webapp: {port: %(NODEPOOL_PORT)}"), options);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->webapp.port, 81);
  EXPECT_EQ(config->zookeeper.servers[0].host, "h");
  EXPECT_FALSE(config::Load(Write("nodepool.yaml", "webapp: {port: %(NODEPOOL_OTHER)}"), options));
}

TEST_F(LoaderTest, EmbeddedZooKeeper) {
  EmbeddedZooKeeper defaults = MustLoad("{}").zookeeper.embedded;
  EXPECT_EQ(defaults.state_dir, "/var/lib/nodepool");
  EXPECT_EQ(defaults.port, 2181);
  EXPECT_FALSE(defaults.tls);
  EmbeddedZooKeeper embedded =
      MustLoad("embedded-zookeeper: {state-dir: /s, port: 7, tls: {cert: c, key: k, ca: a}}")
          .zookeeper.embedded;
  EXPECT_EQ(embedded.state_dir, "/s");
  EXPECT_EQ(embedded.port, 7);
  ASSERT_TRUE(embedded.tls);
  EXPECT_EQ(*embedded.tls, (EmbeddedZooKeeper::Tls{"0.0.0.0", 2281, {"c", "k", "a"}}));
  EXPECT_THAT(ErrorOf("embedded-zookeeper: {port: 0}"), HasSubstr("expected a number from 1 to 65535"));
  EXPECT_THAT(ErrorOf("embedded-zookeeper: {tls: {cert: c}}"), HasSubstr("expected cert, key and ca"));
}

class CheckZooKeeperTest : public LoaderTest {
 protected:
  std::string Check(const ZooKeeperSettings& settings) {
    Expected<void> result = CheckZooKeeperSettings(settings);
    return result ? "fine" : result.error().message();
  }
};

TEST_F(CheckZooKeeperTest, NeedsServers) {
  EXPECT_EQ(Check({}), "No ZooKeeper servers specified in config. `nodepool standalone` brings one.");
}

// D-03, configuration.17.15
TEST_F(CheckZooKeeperTest, WithoutTlsOnlyThisHostOrWhenConfigured) {
  EXPECT_EQ(Check({.servers = {{"localhost", 1}, {"127.0.0.9", 1}, {"::1", 1}}}), "fine");
  EXPECT_THAT(Check({.servers = {{"::1", 1}, {"zk1", 1}}}),
              HasSubstr("TLS connection to ZooKeeper is required"));
  EXPECT_THAT(Check({.servers = {{"127.0.0.1.example.net", 1}}}), HasSubstr("required"));
  EXPECT_EQ(Check({.servers = {{"zk1", 1}}, .insecure = true}), "fine");
}

TEST_F(CheckZooKeeperTest, TlsMustBeCompleteAndReadable) {
  std::string file = Write("pem", "x");
  ZooKeeperSettings settings{.servers = {{"zk1", 1}}, .tls = ZooKeeperTls{file, file, file}};
  EXPECT_EQ(Check(settings), "fine");
  settings.tls->key = "";
  EXPECT_THAT(Check(settings), HasSubstr("zookeeper-tls.key is missing"));
  settings.tls->key = dir_ + "/none";
  EXPECT_THAT(Check(settings), HasSubstr("/none cannot be read: No such file"));
  settings.tls->ca = "";
  EXPECT_EQ(ZooKeeperFaults(settings).size(), 2u);
}

TEST_F(LoaderTest, EverySectionThatIsWrongIsAFault) {
  LoadOptions options{.drivers = OnlyTestDrivers, .driver_names = {"static"}};
  std::string file = Write("nodepool.yaml",
                           "webapp: {port: -1}\nembedded-zookeeper: {port: 0}\n"
                           "providers: [{name: p, driver: statik}]\n");
  LoadResult result = LoadAll(file, ReadDocument(file, options.environment), options);
  std::vector<std::string> messages;
  for (const Error& fault : result.faults) messages.push_back(fault.message());
  EXPECT_THAT(messages, ElementsAre(HasSubstr("webapp.port"), HasSubstr("embedded-zookeeper.port"),
                                    HasSubstr("statik: unknown driver; did you mean 'static'?")));
  EXPECT_EQ(config::Load(file, options).error().message(), messages.front());
}

constexpr const char* kHash =
    "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g";

TEST_F(LoaderTest, TokensAreInTheSecureFile) {
  std::string secure = fmt::format(
      "webapp-tokens:\n- {{name: ci, hash: '{0}', scopes: [request, operate], max-nodes: 20, labels: [small, "
      "a*],\n"
      "   priority: 200, tenant: t}}\n- {{name: reader, hash: '{0}'}}\n",
      kHash);
  Config config = MustLoad("labels: []", secure);
  ASSERT_EQ(config.web_tokens.size(), 2u);
  const WebToken& token = config.web_tokens[0];
  EXPECT_EQ(token.name, "ci");
  EXPECT_EQ(token.hash, kHash);
  EXPECT_TRUE(token.may(Scope::kRead) && token.may(Scope::kRequest) && token.may(Scope::kOperate));
  EXPECT_EQ(token.max_nodes, 20);
  EXPECT_EQ(token.labels, (std::vector<std::string>{"small", "a*"}));
  EXPECT_EQ(token.priority, 200);
  EXPECT_EQ(token.tenant, "t");
  EXPECT_FALSE(config.web_tokens[1].may(Scope::kRequest));
  EXPECT_FALSE(config.webapp.read_needs_token);
  EXPECT_TRUE(MustLoad("webapp: {read-needs-token: true}").webapp.read_needs_token);
  EXPECT_TRUE(MustLoad("labels: []").web_tokens.empty());
}

TEST_F(LoaderTest, ACertificateOfTheWebServerIsWhole) {  // TLS-2
  EXPECT_FALSE(MustLoad("labels: []").webapp.tls);
  EXPECT_FALSE(MustLoad("webapp: {tls: null}").webapp.tls);
  EXPECT_EQ(MustLoad("webapp: {tls: {cert: c, key: k, ca: a}}").webapp.tls,
            (WebAppSettings::Tls{"c", "k", "a"}));
  for (const char* tls : {"{}", "{cert: c}", "{key: k}", "{cert: '', key: k}"}) {
    EXPECT_THAT(ErrorOf(std::string("webapp: {tls: ") + tls + "}"), HasSubstr("expected cert and key"))
        << tls;
  }
}

TEST_F(LoaderTest, TokensThatCannotBeUsedAreRefusedWithoutTheirHash) {
  auto fault = [this](const std::string& entry) {
    return ErrorOf("labels: []", "webapp-tokens:\n- {" + entry + "}\n");
  };
  std::string hash = fmt::format("hash: '{}'", kHash);
  EXPECT_THAT(fault("name: a.b, " + hash), ::testing::HasSubstr("name"));
  EXPECT_THAT(fault("name: ci"), ::testing::HasSubstr("hash"));
  EXPECT_THAT(fault("name: ci, hash: hunter2"), ::testing::HasSubstr("nodepool token"));
  EXPECT_THAT(fault("name: ci, hash: hunter2"), ::testing::Not(::testing::HasSubstr("hunter2")));
  EXPECT_THAT(fault("name: ci, scopes: [root], " + hash), ::testing::HasSubstr("root"));
  EXPECT_THAT(fault("name: ci, max-nodes: -1, " + hash), ::testing::HasSubstr("max-nodes"));
  EXPECT_THAT(fault("name: ci, priority: 1000, " + hash), ::testing::HasSubstr("priority"));
  EXPECT_THAT(fault("name: ci, " + hash + "}\n- {name: ci, " + hash), ::testing::HasSubstr("twice"));
}

// configuration.md 2.2, 9.6
TEST_F(LoaderTest, WhatIsDroppedIsAWarningWithBothLines) {
  LoadOptions options{.secure_path = Write("secure.yaml", "diskimages: []\ndiskimages:\n"),
                      .drivers = OnlyTestDrivers,
                      .driver_names = {"static"}};
  std::string file = Write("nodepool.yaml",
                           "labels: [{name: a}]\nlabels: [{name: b}, {name: b}]\n"
                           "diskimages: [{name: i}, {name: i}]\n");
  Expected<Config> config = config::Load(file, options);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->labels.size(), 1u) << "the last one counts";
  EXPECT_THAT(config->warnings,
              ElementsAre(file + ": line 2, column 1: labels is given again; what line 1 says has no effect",
                          HasSubstr("diskimage i is defined again; what line 3 defines has no effect"),
                          HasSubstr("label b is defined again; what line 2 defines has no effect"),
                          HasSubstr("secure.yaml: line 2, column 1: diskimages is given again")));
}

// D-01
TEST_F(LoaderTest, ChrootsThatZooKeeperDoesNotTake) {
  for (const auto& [chroot, fault] :
       {std::pair("/a//b", "has an empty component"), std::pair("/x/../y", "has the component '..'"),
        std::pair("/./y", "has the component '.'"), std::pair("\"/a\\x01\"", "has a control character")}) {
    std::string file =
        Write("nodepool.yaml", fmt::format("zookeeper-servers:\n- host: zk\n  chroot: {}\n", chroot));
    Expected<Config> config = config::Load(file, {.drivers = OnlyTestDrivers});
    ASSERT_FALSE(config) << chroot;
    EXPECT_THAT(config.error().message(), AllOf(HasSubstr("line 3, column 11"), HasSubstr(fault)));
  }
}

}  // namespace

}  // namespace nodepool::config
