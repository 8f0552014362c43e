#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>

#include "base/testing/test_environment.h"
#include "base/text.h"

namespace nodepool::drivers::kubernetes {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Client certificates: one until 2125, and one that ended in 2018.
constexpr const char* kCertificate =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBFzCBvQIUFzJBhTvazFtbb2QYUEf0Q3diC64wCgYIKoZIzj0EAwIwDTELMAkG\n"
    "A1UEAwwCY2kwIBcNMjYxMTIzMjEwOTMxWhgPMjEyNTA2MTcyMTA5MzFaMA0xCzAJ\n"
    "BgNVBAMMAmNpMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEi8EQv7sz2zGek+8D\n"
    "6CQLT86ozE+GirfixXo36oJk1XYvnZd6Vv7DaFHjzbeOywdeRi90u+nYGnQG5bpl\n"
    "QcbbNDAKBggqhkjOPQQDAgNJADBGAiEAhfMg8Ie+lwYlbQdmnTWsKRzrmb0CTs8U\n"
    "/sP6GrHEcq4CIQCv15+gAh5bp9L/AmvXyEL6YHgCKHHqU0WS18g8UFFwoQ==\n"
    "-----END CERTIFICATE-----\n";
constexpr const char* kEndedCertificate =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBAjCBqAIBATAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJjaTAeFw0xODAxMDEw\n"
    "MDAwMDBaFw0xODAyMDEwMDAwMDBaMA0xCzAJBgNVBAMMAmNpMFkwEwYHKoZIzj0C\n"
    "AQYIKoZIzj0DAQcDQgAEi8EQv7sz2zGek+8D6CQLT86ozE+GirfixXo36oJk1XYv\n"
    "nZd6Vv7DaFHjzbeOywdeRi90u+nYGnQG5bplQcbbNDAKBggqhkjOPQQDAgNJADBG\n"
    "AiEAhnY6ve9QJ7Cu+MNYSvSzEgq5+HY1fDSTMYbkD8RvZCUCIQCeqsCf2Br0Ev2B\n"
    "1uPxJ7lBrKX6vWtRrJFf97Ntzomn8w==\n"
    "-----END CERTIFICATE-----\n";

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    places_.environment = {{"HOME", folder_}};
    places_.pod_account = folder_ + "/account";
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  // A file with one cluster, context and user.
  void Use(const std::string& cluster, const std::string& user) {
    places_.environment["KUBECONFIG"] =
        Write("config",
              "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
              "clusters: [{name: k, cluster: " +
                  cluster + "}]\nusers: [{name: u, user: " + user + "}]\n");
  }
  Connection Read(std::optional<std::string> context = std::nullopt) {
    return ReadConnection(places_, context);
  }
  std::string ErrorOf(std::optional<std::string> context = std::nullopt) {
    try {
      Read(std::move(context));
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  Places places_;
};

// K8S-32, K8S-43: of equal names the first counts; paths are relative to their file.
TEST_F(KubeconfigTest, SeveralFilesAreOne) {
  Write("b/ca.crt", "authority");
  std::string first = Write("a/config",
                            "current-context: one\n"
                            "contexts: [{name: one, context: {cluster: k, user: u}}]\n"
                            "clusters: [{name: k, cluster: {server: 'https://first:6443/prefix/'}}]\n"
                            "users: [{name: u, user: {token: t1}}, {name: u, user: {token: t2}}]\n");
  std::string second =
      Write("b/config",
            "current-context: two\n"
            "contexts: [{name: two, context: {cluster: paths, user: u}}, {name: one, context: {}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://second'}},\n"
            "           {name: paths, cluster: {server: s, certificate-authority: ca.crt}}]\n");
  places_.environment["KUBECONFIG"] = folder_ + "/missing::" + first + ":" + second;
  Connection one = Read();
  EXPECT_EQ(one.server, "https://first:6443/prefix");
  EXPECT_EQ(one.user.token, "t1");
  EXPECT_THAT(one.files, ElementsAre(first, second));
  Connection two = Read("two");
  EXPECT_EQ(two.ca_pem, "authority");
  EXPECT_THAT(two.files, ElementsAre(first, second, folder_ + "/b/ca.crt"));
}

// K8S-33, K8S-38, K8S-39
TEST_F(KubeconfigTest, WhatIsMissingIsNamed) {
  places_.environment["KUBECONFIG"] = Write("config", "contexts: [{name: c, context: {cluster: k}}]\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("has no current-context"));
  EXPECT_THAT(ErrorOf("x"), HasSubstr("there is no context x in " + folder_ + "/config"));
  EXPECT_THAT(ErrorOf("c"), HasSubstr("there is no cluster k, which context c names"));
  Write("config", "");
  EXPECT_THAT(ErrorOf("c"), HasSubstr("is not a kubeconfig"));
  Write("config", "a: [");
  EXPECT_THAT(ErrorOf("c"), HasSubstr(folder_ + "/config"));
  Use("{server: s, certificate-authority: none.crt}", "{}");
  EXPECT_THAT(ErrorOf(), HasSubstr("none.crt cannot be read"));
  Use("{server: s, certificate-authority-data: '?'}", "{}");
  EXPECT_THAT(ErrorOf(), HasSubstr("not base64"));
  Use("{}", "{}");
  EXPECT_THAT(ErrorOf(), HasSubstr("has no server"));
}

TEST_F(KubeconfigTest, TheHomeDirectoryIsTheDefault) {
  Write(".kube/config",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: "
        "{server: s}}]");
  EXPECT_EQ(Read().server, "s");
  places_.environment["KUBECONFIG"] = "~/.kube/config";
  EXPECT_EQ(Read().server, "s");
}

// K8S-37
TEST_F(KubeconfigTest, APodUsesItsAccount) {
  places_.environment["KUBECONFIG"] = "";
  EXPECT_THAT(ErrorOf(), HasSubstr("there is no kubeconfig"));
  places_.environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  places_.environment["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_THAT(ErrorOf(), HasSubstr("account/ca.crt"));
  Write("account/ca.crt", "authority");
  Connection connection = Read("any");
  EXPECT_EQ(connection.server, "https://[fd00::1]:443");
  EXPECT_EQ(connection.ca_pem, "authority");
  EXPECT_EQ(connection.user.token_file, folder_ + "/account/token");
}

// K8S-92
TEST_F(KubeconfigTest, ACertificateThatHasEndedIsNamed) {
  Write("client.crt", kEndedCertificate);
  Use("{server: s}", "{client-certificate: client.crt}");
  EXPECT_THAT(ErrorOf(),
              AllOf(HasSubstr("the client certificate in " + folder_ + "/client.crt ended at 2018-"),
                    HasSubstr("replace it there by a new one")));
  Use("{server: s}", "{client-certificate-data: " + Base64(kEndedCertificate) + "}");
  EXPECT_THAT(ErrorOf(), HasSubstr("client-certificate-data ended at"));
  Write("client.crt", "what is this");
  Use("{server: s}", "{client-certificate: client.crt}");
  EXPECT_THAT(ErrorOf(), HasSubstr("client.crt is not a client certificate in PEM format"));
  Write("client.crt", kCertificate);
  User user = Read().user;
  EXPECT_EQ(user.certificate_pem, kCertificate);
  EXPECT_LT(user.certificate_ends, WallTime::max());
}

// K8S-34
TEST_F(KubeconfigTest, TheFirstKindOfCredentialsCounts) {
  Use("{server: s}",
      "{token: t, tokenFile: f, exec: {command: x}, username: n, password: p, client-certificate-data: " +
          Base64(kCertificate) + ", client-key-data: " + Base64("key") + "}");
  User user = Read().user;
  EXPECT_EQ(user.token, "t");
  EXPECT_EQ(user.token_file, "");
  EXPECT_FALSE(user.exec);
  EXPECT_EQ(user.username, "");
  EXPECT_EQ(user.certificate_pem, kCertificate);
  EXPECT_EQ(user.key_pem, "key");
  Use("{server: s}", "{tokenFile: f, exec: {command: x}}");
  EXPECT_EQ(Read().user.token_file, folder_ + "/f");
  Use("{server: s}",
      "{exec: {apiVersion: v, command: x, args: [a, 1], env: [{name: N, value: V}]}, username: n}");
  user = Read().user;
  EXPECT_THAT(user.exec->argv, ElementsAre("x", "a", "1"));
  EXPECT_THAT(user.exec->environment, ElementsAre(Pair("N", "V")));
  EXPECT_EQ(user.exec->folder, folder_);
  Use("{server: s}", "{username: n, password: p}");
  EXPECT_EQ(Read().user.password, "p");
  Use("{server: s}", "{auth-provider: {name: oidc, config: {id-token: i}}, token: t}");
  EXPECT_EQ(Read().user.token, "i");
  Use("{server: s}",
      "{auth-provider: {name: gcp, config: {access-token: i, expiry: '2020-01-02T03:04:05Z'}}}");
  EXPECT_THAT(ErrorOf(), HasSubstr("use an exec plugin"));
  Use("{server: s}", "{as: other, as-groups: [g, h], token: t}");
  EXPECT_THAT(Read().user.impersonation,
              ElementsAre(Pair("Impersonate-User", "other"), Pair("Impersonate-Group", "g"),
                          Pair("Impersonate-Group", "h")));
}

// K8S-29, K8S-42
TEST_F(KubeconfigTest, SettingsOfTheCluster) {
  Use("{server: 'https://s/', insecure-skip-tls-verify: true, tls-server-name: name, proxy-url: "
      "'http://p:1'}",
      "{}");
  Connection connection = Read();
  EXPECT_EQ(connection.server, "https://s");
  EXPECT_FALSE(connection.verifies_tls);
  EXPECT_EQ(connection.server_name, "name");
  EXPECT_EQ(connection.proxy, "http://p:1");
}

// Answers with a text, and remembers the command.
class ScriptedRunner : public process::Runner {
 public:
  Task<process::Exit> Run(process::Command run) override {
    command = std::move(run);
    co_return exit;
  }
  process::Command command;
  process::Exit exit;
};

class ExecPluginTest : public ::testing::Test {
 protected:
  ExecPluginTest() {
    plugin.api_version = "client.authentication.k8s.io/v1";
    plugin.argv = {"helper", "a b"};
    plugin.folder = "/etc/x";
    plugin.environment = {{"A", "own"}};
    connection.server = "https://s";
    connection.ca_pem = "ca";
  }
  PluginCredential Run() {
    Loop loop;
    return RunToEnd(loop, RunPlugin(runner, plugin, connection, {{"A", "1"}, {"B", "2"}}));
  }
  std::string ErrorOf(const std::string& output, int code = 0) {
    runner.exit = {.code = code, .output = output};
    try {
      Run();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }

  ExecPlugin plugin;
  Connection connection;
  ScriptedRunner runner;
};

// K8S-35
TEST_F(ExecPluginTest, GetsItsWordsVariablesAndFolder) {
  runner.exit.output =
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
          {"token":"t","expirationTimestamp":"2026-01-02T03:04:05Z"}})";
  plugin.wants_cluster = true;
  PluginCredential credential = Run();
  EXPECT_EQ(credential.token, "t");
  EXPECT_EQ(credential.expires, WallTime(std::chrono::seconds(1767323045)));
  EXPECT_EQ(runner.command.argv.back(), "a b");
  EXPECT_EQ(runner.command.argv[4], "/etc/x");
  EXPECT_EQ(runner.command.environment.at("A"), "own");
  EXPECT_EQ(runner.command.environment.at("B"), "2");
  EXPECT_EQ(boost::json::parse(runner.command.environment.at("KUBERNETES_EXEC_INFO")),
            boost::json::parse(R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
              "spec":{"interactive":false,"cluster":{"server":"https://s","certificate-authority-data":"Y2E="}}})"));
}

// K8S-36
TEST_F(ExecPluginTest, WhatItDoesWrongIsSaidWithoutItsOutput) {
  EXPECT_THAT(ErrorOf("secret", 3), HasSubstr("helper has failed with exit status 3"));
  EXPECT_THAT(ErrorOf("secret"), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf(R"({"apiVersion":"other","status":{"token":"secret"}})"),
              HasSubstr("speaks version other"));
  std::string begin = R"({"apiVersion":"client.authentication.k8s.io/v1","status":)";
  EXPECT_THAT(ErrorOf(begin + "{}}"), HasSubstr("no credential"));
  EXPECT_THAT(ErrorOf(begin + R"({"clientCertificateData":"secret"}})"), HasSubstr("no credential"));
  runner.exit.is_timed_out = true;
  for (const char* output : {"secret", ""})
    EXPECT_THAT(ErrorOf(output, 1), ::testing::Not(HasSubstr("secret")));
}

}  // namespace

}  // namespace nodepool::drivers::kubernetes
