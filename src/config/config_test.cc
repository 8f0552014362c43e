#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/main_schema.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WebTokensTest, Patterns) {
  EXPECT_TRUE(MatchesPattern("small", "small"));
  EXPECT_FALSE(MatchesPattern("smaller", "small"));
  EXPECT_TRUE(MatchesPattern("smaller", "small*"));
  EXPECT_TRUE(MatchesPattern("debian-12-small", "debian-*-small"));
  EXPECT_FALSE(MatchesPattern("debian-small", "debian-*-small"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_FALSE(MatchesPattern("", "a"));
}

TEST(WebTokensTest, Names) {
  EXPECT_TRUE(IsTokenName("ci_2-B"));
  for (std::string bad : {std::string(), std::string("a.b"), std::string("a b"), std::string(65, 'a'),
                          std::string("a\n"), std::string("ä")})
    EXPECT_FALSE(IsTokenName(bad)) << bad;
}

Expected<std::vector<RunnerService>> Read(const std::string& main, const std::string& secure = "{}") {
  Expected<Document> config = ParseDocument(main);
  Expected<Document> secrets = ParseDocument(secure);
  if (!config) return std::unexpected(config.error());
  if (!secrets) return std::unexpected(secrets.error());
  try {
    return ReadRunners(Section(config->root, MainSchema(), ""),
                       ReadRunnerSecrets(Section(secrets->root, SecureSchema(), "")));
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

std::string Service(const std::string& more, const std::string& set = "") {
  return "runners:\n- name: octo\n  url: https://github.com/octo/\n" + more +
         "  sets:\n  - name: np-small\n    node-label: small\n" + set;
}

std::string FaultOf(const std::string& main, const std::string& secure = "{}") {
  auto read = Read(main, secure);
  return read ? "none" : read.error().message();
}

// RUN-70
TEST(RunnerServicesTest, DefaultsAndValues) {
  auto read =
      Read(Service("  group: nodepool\n", "    labels: [np-small, big]\n    max-per-repo: 3\n    user: ci\n"),
           "runner-services:\n- name: octo\n  token: ghp_x\n");
  ASSERT_TRUE(read) << read.error().message();
  const RunnerService& service = read->front();
  EXPECT_EQ(service.url, "https://github.com/octo");
  EXPECT_EQ(service.group, "nodepool");
  EXPECT_EQ(service.credentials.token, "ghp_x");
  const RunnerSet& set = service.sets.front();
  EXPECT_THAT(set.labels, ElementsAre("np-small", "big"));
  EXPECT_EQ(set.node_label, LabelName("small"));
  EXPECT_EQ(set.max_per_repo, 3);
  EXPECT_EQ(set.user, "ci");
  EXPECT_EQ(set.folder, "actions-runner");
  EXPECT_EQ(set.start_timeout, std::chrono::seconds(120));
}

// RUN-70
TEST(RunnerServicesTest, WithoutLabelsTheNameIsTheLabel) {
  auto read = Read(Service(""));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_THAT(read->front().sets.front().labels, ElementsAre("np-small"));
  EXPECT_TRUE(read->front().credentials.empty());
}

// RUN-70: each fault names line and column.
TEST(RunnerServicesTest, FaultsNameTheirPlace) {
  EXPECT_THAT(FaultOf(Service("  service: gitlab\n")), AllOf(HasSubstr("line 4"), HasSubstr("github")));
  EXPECT_THAT(FaultOf(Service("  mode: hooks\n")), AllOf(HasSubstr("line 4"), HasSubstr("webhook")));
  EXPECT_THAT(FaultOf(Service("", "    max-runners: 20000\n")), HasSubstr("line 7"));
  EXPECT_THAT(FaultOf(Service("", "    user: \"a b\"\n")), HasSubstr("line 7"));
  EXPECT_THAT(FaultOf(Service("", "    folder: \"$(x)\"\n")), HasSubstr("line 7"));
  EXPECT_THAT(FaultOf(Service("", "    labels: [\"a\\x1b\"]\n")),
              AllOf(HasSubstr("label"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(FaultOf(Service("", "  - name: NP-small\n    node-label: small\n")),
              HasSubstr("defined twice"));
  EXPECT_THAT(FaultOf("runners:\n- name: a/b\n  url: https://github.com/x\n  sets: []\n"),
              HasSubstr("letters"));
}

// RUN-70
TEST(RunnerServicesTest, AddressesThatAreRefused) {
  for (const char* url : {"http://github.com/octo", "https://user@github.com/octo",
                          "https://github.com/octo?x=1", "https://github.com", "https://github.com/a/b/c",
                          "https://github.com//a", "https://github.com/a%2fb", "github.com/octo"}) {
    std::string main = std::string("runners:\n- name: octo\n  url: \"") + url + "\"\n  sets: []\n";
    EXPECT_THAT(FaultOf(main), HasSubstr("line 3")) << url;
  }
}

// RUN-70: the same set of the same address.
TEST(RunnerServicesTest, ASetBelongsToOneService) {
  std::string again =
      "- name: other\n  url: https://GitHub.com/Octo\n  sets:\n  - name: np-small\n    node-label: x\n";
  EXPECT_THAT(FaultOf(Service("") + again), HasSubstr("is also one of octo"));
  std::string twice = "- name: octo\n  url: https://github.com/b\n  sets: []\n";
  EXPECT_THAT(FaultOf(Service("") + twice), HasSubstr("the service octo is defined twice"));
}

// RUN-5, RUN-50, RUN-70: one kind of credentials; no fault quotes one.
TEST(RunnerServicesTest, Secrets) {
  auto fault = [](const std::string& entry) {
    return FaultOf(Service(""), "runner-services:\n- name: octo\n" + entry);
  };
  EXPECT_THAT(fault(""), HasSubstr("either"));
  EXPECT_THAT(fault("  token: ghp_secret\n  app-client-id: Iv23\n"),
              AllOf(HasSubstr("either"), Not(HasSubstr("ghp_"))));
  EXPECT_THAT(fault("  app-client-id: Iv23\n  app-installation-id: 8\n"), HasSubstr("app-private-key"));
  EXPECT_THAT(fault("  app-client-id: Iv23\n  app-installation-id: 8\n  app-private-key: \"-----BEGIN "
                    "KEY\\nsecret\"\n"),
              AllOf(HasSubstr("PEM"), Not(HasSubstr("secret"))));
  EXPECT_EQ(fault("  app-client-id: Iv23\n  app-installation-id: 8\n  app-private-key: /etc/key.pem\n"),
            "none");
  EXPECT_THAT(fault("  token: a\n- name: octo\n  token: b\n"), HasSubstr("defined twice"));
}

// RUN-70: what webhooks and polls of GitHub have.
TEST(RunnerServicesTest, WebhooksAndPolls) {
  const std::string hooked = "  mode: webhook\n  repos: [octo/app, octo/lib]\n  allow-forks: true\n";
  auto read =
      Read(Service(hooked),
           "runner-services:\n- name: octo\n  token: x\n  webhook-secret: [old-secret, new-secret]\n");
  ASSERT_TRUE(read) << read.error().message();
  const RunnerService& service = read->front();
  EXPECT_EQ(service.mode, RunnerMode::kWebhook);
  EXPECT_THAT(service.credentials.webhook_secrets, ElementsAre("old-secret", "new-secret"));
  EXPECT_TRUE(service.Covers("Octo/App"));
  EXPECT_FALSE(service.Covers("octo/other"));
  EXPECT_EQ(Read(Service(""))->front().mode, RunnerMode::kScaleSet);
  EXPECT_TRUE(Read(Service(""))->front().Covers("octo/any"));
  EXPECT_FALSE(Read(Service(""))->front().Covers("octopus/any"));
  const std::string token = "runner-services:\n- name: octo\n  token: x\n";
  EXPECT_THAT(FaultOf(Service(hooked), token), HasSubstr("webhook-secret"));
  EXPECT_THAT(FaultOf(Service("  mode: poll\n"), token), HasSubstr("repos"));
  EXPECT_EQ(FaultOf(Service("  mode: poll\n")), "none");
  EXPECT_THAT(FaultOf(Service("  mode: poll\n  repos: [app]\n")), HasSubstr("OWNER/NAME"));
  EXPECT_THAT(FaultOf(Service("  repos: [octo/app]\n")), HasSubstr("mode webhook or poll"));
  EXPECT_THAT(FaultOf(Service("  allow-forks: true\n")), HasSubstr("mode webhook or poll"));
  EXPECT_THAT(FaultOf(Service(hooked), token + "  webhook-secret: short\n"),
              AllOf(HasSubstr("at least 8"), Not(HasSubstr("short"))));
}

// RUN-70, RUN-90
TEST(RunnerServicesTest, Forgejo) {
  auto read = Read(Service("  service: forgejo\n"), "runner-services:\n- name: octo\n  token: x\n");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->front().kind, RunnerServiceKind::kForgejo);
  EXPECT_EQ(Read(Service(""))->front().kind, RunnerServiceKind::kGithub);
  EXPECT_THAT(FaultOf(Service("  service: forgejo\n  mode: scale-set\n")), HasSubstr("expected poll"));
  EXPECT_THAT(FaultOf(Service("  service: forgejo\n  group: x\n")), HasSubstr("no runner groups"));
  EXPECT_THAT(FaultOf(Service("  service: forgejo\n", "    labels: [\"a,b\"]\n")),
              HasSubstr("cannot be a label"));
  EXPECT_THAT(FaultOf(Service("  service: forgejo\n"),
                      "runner-services:\n- name: octo\n  app-client-id: x\n  app-installation-id: 1\n"
                      "  app-private-key: /x.pem\n"),
              HasSubstr("expected token"));
}

}  // namespace

}  // namespace nodepool::config
