// What the API says, and credentials for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/machine/machines.h"

namespace nodepool::drivers::kubernetes {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

driver::cloud::api::Fault FaultOfStatus(int status, const std::string& reason, const std::string& message,
                                        const std::string& cause = "") {
  return ReadStatus(status, R"({"kind":"Status","reason":")" + reason + R"(","message":")" + message +
                                R"(","details":{"causes":[{"reason":")" + cause + R"("}]}})");
}

// driver-kubernetes.md 4.2
TEST(StatusTest, IsReadByCodeAndReason) {
  auto fault = FaultOfStatus(422, "Invalid", "name is too long");
  EXPECT_EQ(fault.verdict, Verdict::kInvalid);
  EXPECT_EQ(fault.code, "Invalid");
  EXPECT_EQ(fault.text, "name is too long");
  EXPECT_EQ(FaultOfStatus(401, "Unauthorized", "").verdict, Verdict::kRetry);
  EXPECT_EQ(FaultOfStatus(403, "Forbidden", "no").verdict, Verdict::kInvalid);
  EXPECT_EQ(FaultOfStatus(404, "NotFound", "no").verdict, Verdict::kNotFound);
  EXPECT_EQ(FaultOfStatus(409, "AlreadyExists", "no").verdict, Verdict::kConflict);
  EXPECT_EQ(FaultOfStatus(500, "InternalError", "no").verdict, Verdict::kRetry);
  EXPECT_EQ(FaultOfStatus(429, "TooManyRequests", "no").verdict, Verdict::kRateLimited);
  fault = FaultOfStatus(403, "Forbidden", "is being terminated", "NamespaceTerminating");
  EXPECT_EQ(fault.verdict, Verdict::kFail) << "it is not about the cluster";
  EXPECT_EQ(fault.code, "NamespaceTerminating");
  EXPECT_EQ(FaultOfStatus(500, "", "etcdserver: leader changed").verdict, Verdict::kRetry);
  for (int status : {502, 503, 504})
    EXPECT_EQ(ReadStatus(status, "<html>").verdict, Verdict::kRetry) << status;
  EXPECT_EQ(ReadStatus(502, "<html>bad gateway</html>").text, "bad gateway");
}

// K8S-53, K8S-54
TEST(StatusTest, QuotaIsReadFromTheText) {
  EXPECT_EQ(FaultOfStatus(403, "Forbidden", "forbidden: exceeded quota: few").verdict, Verdict::kQuota);
  EXPECT_EQ(FaultOfStatus(403, "Forbidden", "user ci cannot create more than 2 project(s).").verdict,
            Verdict::kQuota);
  EXPECT_FALSE(MentionsQuota("cannot create more than that"));
  EXPECT_THAT(ExceededResources("pods \"x\" is forbidden: exceeded quota: gpus, requested: "
                                "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: "
                                "requests.nvidia.com/gpu=4"),
              ElementsAre("nvidia.com/gpu"));
  EXPECT_THAT(
      ExceededResources("Exceeded quota: all, requested: limits.cpu=2,pods=1,requests.memory=1Gi, used: "
                        "cpu=9, limited: cpu=9"),
      ElementsAre("instances", "limits.cpu", "ram"));
  EXPECT_THAT(ExceededResources("you cannot create more than 2 project(s)."), ElementsAre("instances"));
  for (const char* text : {"exceeded quota", "exceeded quota: x, requested: ", "requested: pods", ""})
    EXPECT_THAT(ExceededResources(text), ::testing::IsEmpty()) << text;
}

TEST(PathTest, CollectionOf) {
  EXPECT_EQ(CollectionOf("/api/v1/namespaces"), "namespaces");
  EXPECT_EQ(CollectionOf("/api/v1/namespaces/main-1"), "namespaces");
  EXPECT_EQ(CollectionOf("/api/v1/namespaces/main-1/pods/x?a=b/c"), "pods");
  EXPECT_EQ(CollectionOf("/api/v1/pods?watch=true"), "pods");
  EXPECT_EQ(CollectionOf("/apis/rbac.authorization.k8s.io/v1/namespaces/x/roles"), "roles");
  EXPECT_EQ(CollectionOf("/apis/project.openshift.io/v1/projectrequests"), "projectrequests");
  EXPECT_EQ(CollectionOf(""), "api");
}

class LineQueueTest : public ::testing::Test {
 protected:
  // "-": none is left.
  std::string Next(LineQueue& lines) { return time.Run(lines.Next()).value_or("-"); }
  std::string FaultOf(LineQueue& lines) {
    try {
      while (Next(lines) != "-") continue;
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  nodepool::testing::VirtualTime time;
};

TEST_F(LineQueueTest, LinesInPieces) {
  LineQueue lines;
  EXPECT_TRUE(lines.Add("ab"));
  EXPECT_TRUE(lines.Add("c\n\nde\nf"));
  EXPECT_EQ(Next(lines), "abc");
  EXPECT_EQ(Next(lines), "de");
  EXPECT_TRUE(lines.Add("g\n"));
  lines.Close(std::nullopt);
  EXPECT_EQ(Next(lines), "fg");
  EXPECT_EQ(Next(lines), "-");
  EXPECT_FALSE(lines.Add("h\n"));
}

TEST_F(LineQueueTest, AFailureComesBehindTheLinesBeforeIt) {
  LineQueue lines;
  lines.Add("a\n");
  lines.Close(Failure(Error(Verdict::kRetry, "it broke")));
  EXPECT_EQ(Next(lines), "a");
  EXPECT_EQ(FaultOf(lines), "it broke");
}

TEST_F(LineQueueTest, HasBounds) {
  for (const char* text : {"1234567", "12345\n123456\n", "123456\n"}) {
    LineQueue lines({.line = 5, .waiting = 100});
    EXPECT_FALSE(lines.Add(text));
    EXPECT_THAT(FaultOf(lines), HasSubstr("a line of the answer is longer")) << text;
  }
  LineQueue lines({.line = 5, .waiting = 9});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(lines.Add("1\n2\n3\n"));
    for (const char* line : {"1", "2", "3"}) EXPECT_EQ(Next(lines), line);
  }
  EXPECT_TRUE(lines.Add("1\n2\n3\n"));
  EXPECT_FALSE(lines.Add("1\n2\n3\n4"));
  EXPECT_THAT(FaultOf(lines), HasSubstr("wait to be handled"));
}

TEST(ObjectTest, AnythingMayBeMissingOrOfAnotherType) {
  for (
      const char* text :
      {"{}", R"({"metadata":1,"spec":[],"status":""})",
       R"({"metadata":{"labels":{"a":1},"name":[]},"status":{"conditions":[1,{}],"containerStatuses":[2,{"state":3}]}})"}) {
    Object object = ReadObject(boost::json::parse(text).as_object());
    EXPECT_EQ(object.name, "");
  }
}

TEST(ObjectTest, WhatHoldsANamespace) {
  Object object = ReadObject(boost::json::parse(R"({"status":{"phase":"Terminating","conditions":[
      {"type":"NamespaceDeletionDiscoveryFailure","status":"False","message":"fine"},
      {"type":"NamespaceContentRemaining","status":"True","message":"1 pod"},
      {"type":"NamespaceFinalizersRemaining","status":"True","message":"a finalizer"}]}})")
                                 .as_object());
  EXPECT_TRUE(object.is_terminating);
  EXPECT_EQ(WhatHolds(object), "1 pod; a finalizer");
}

class AccessTest : public ::testing::Test, protected process::Runner {
 protected:
  Task<process::Exit> Run(process::Command) override {
    ++plugin_runs;
    process::Exit exit = plugin_exit;
    co_return exit;
  }
  Task<FilesRead> Read() {
    ++reads;
    FilesRead found = files;
    co_return found;
  }
  net::HttpCall Signed() {
    net::HttpCall call;
    call.url = "/api";
    renew = time.Run(source.Sign(call));
    return call;
  }

  nodepool::testing::VirtualTime time;
  FilesRead files;
  int reads = 0;
  process::Exit plugin_exit;
  int plugin_runs = 0;
  driver::cloud::api::Signer::Renew renew;
  AccessSource source{time.loop(), *this, {}, [this] { return Read(); }};
};

// K8S-34, K8S-42
TEST_F(AccessTest, CallsAreCompleted) {
  files.connection.server = "https://s/prefix";
  files.connection.server_name = "name";
  files.connection.proxy = "http://p:1";
  files.connection.user.token = "t";
  files.connection.user.impersonation = {{"Impersonate-User", "u"}};
  net::HttpCall call = Signed();
  EXPECT_EQ(call.url, "https://s/prefix/api");
  EXPECT_EQ(call.proxy, "http://p:1");
  EXPECT_EQ(call.tls->server_name, "name");
  EXPECT_THAT(call.headers, ElementsAre(Pair("Impersonate-User", "u"), Pair("Authorization", "Bearer t")));
  files.connection.user.token = "";
  files.connection.user.username = "n";
  files.connection.user.password = "p";
  renew({});
  EXPECT_THAT(Signed().headers, Contains(Pair("Authorization", "Basic bjpw")));
  EXPECT_EQ(time.Run(source.Get())->token, "") << "nothing that could be handed out";
}

// K8S-40
TEST_F(AccessTest, ATokenFileIsReadEachMinute) {
  files.connection.user.token_file = "f";
  files.token = "one";
  EXPECT_THAT(Signed().headers, Contains(Pair("Authorization", "Bearer one")));
  files.token = "two";
  time.Advance(50s);
  EXPECT_THAT(Signed().headers, Contains(Pair("Authorization", "Bearer one")));
  time.Advance(11s);
  EXPECT_THAT(Signed().headers, Contains(Pair("Authorization", "Bearer two")));
  EXPECT_EQ(reads, 2);
}

// K8S-35
TEST_F(AccessTest, APluginRunsAgainFiveMinutesBeforeTheExpiry) {
  files.connection.user.exec = ExecPlugin{.api_version = "v", .argv = {"x"}};
  auto expires =
      std::chrono::duration_cast<std::chrono::seconds>((time.loop().Now() + 1h).time_since_epoch());
  plugin_exit.output = R"({"apiVersion":"v","status":{"clientCertificateData":"C","clientKeyData":"K",
      "expirationTimestamp":")" +
                       Iso8601(WallTime(expires)) + R"("}})";
  EXPECT_EQ(Signed().tls->certificate_pem, "C");
  time.Advance(54min);
  Signed();
  EXPECT_EQ(plugin_runs, 1);
  time.Advance(2min);
  Signed();
  EXPECT_EQ(plugin_runs, 2);
}

// K8S-36: no call is sent, and the plugin is left in peace for a while.
TEST_F(AccessTest, APluginThatFails) {
  files.connection.user.exec = ExecPlugin{.api_version = "v", .argv = {"x"}};
  plugin_exit.code = 1;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(Signed(), Error);
  EXPECT_EQ(plugin_runs, 1);
  time.Advance(16s);
  EXPECT_THROW(Signed(), Error);
  EXPECT_EQ(plugin_runs, 2);
  plugin_exit = {.output = R"({"apiVersion":"v","status":{"token":"t"}})"};
  time.Advance(16s);
  EXPECT_THAT(Signed().headers, Contains(Pair("Authorization", "Bearer t")));
}

}  // namespace
}  // namespace nodepool::drivers::kubernetes
