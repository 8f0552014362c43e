#include "drivers/openstack/api/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/log/logging.h"
#include "driver/provider_environment.h"
#include "driver/testing/checks.h"
#include "drivers/openstack/openstack_fixture_for_test.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"

namespace nodepool::drivers::openstack {

// Logging in, faults and pauses.

namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SessionTest : public OpenstackTest {
 protected:
  Session& session() {
    if (!session_) {
      session_.emplace(time.loop(), blocking_pool, random, http_, config->cloud_config, options_);
    }
    return *session_;
  }
  ApiReply Call(std::string method = "GET", std::string path = "/servers/detail",
                Service service = Service::kCompute) {
    ApiCall call;
    call.service = service;
    call.method = std::move(method);
    call.path = std::move(path);
    if (call.method == "POST")
      call.body = boost::json::object{{"server", {{"name", "x"}, {"metadata", boost::json::object()}}}};
    return time.Run(session().Call(std::move(call)), 10h);
  }
  Error Failure(std::string method = "GET", std::string path = "/servers/detail",
                Service service = Service::kCompute) {
    try {
      Call(std::move(method), std::move(path), service);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "there was an answer";
    return Error(Verdict::kFail, "");
  }

  testing::ImposterClient http_{time.loop(), imposter};
  Session::Options options_;
  std::optional<Session> session_;
};

TEST_F(SessionTest, OneLoginForAllCalls) {
  Call();
  Call();
  EXPECT_EQ(imposter.tokens_given, 1);
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/"), 2) << "the version document, first without the token";
}

TEST_F(SessionTest, TheTokenIsRenewedBeforeItsEnd) {
  Call();
  time.Advance(59min);
  Call();
  EXPECT_EQ(imposter.tokens_given, 2);
}

// A token that a service no longer accepts is renewed, and the call repeated.
TEST_F(SessionTest, AnExpiredTokenIsRenewed) {
  Call();
  imposter.DropTokens();
  EXPECT_EQ(Call().status, 200);
  EXPECT_EQ(imposter.tokens_given, 2);
}

TEST_F(SessionTest, WrongCredentialsAreReportedButNotShown) {
  config->cloud_config.credentials.options["password"] = "wrong-password";
  Error error = Failure();
  EXPECT_EQ(error.verdict(), Verdict::kRetry) << "it says nothing about the call";
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("cloud vendor: logging in at http://cloud.example/identity/v3: 401"),
                    HasSubstr("requires authentication"), Not(HasSubstr("wrong-password"))));
}

TEST_F(SessionTest, ALoginWithoutAnAnswerSaysWhatWasTried) {
  imposter.Add({.method = "POST", .path = "/identity/v3/auth/tokens", .breaks = true});
  Error error = Failure();
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(),
              HasSubstr("cloud vendor: logging in: POST http://cloud.example/identity/v3/auth/tokens"));
}

TEST_F(SessionTest, ALoginWithHalfAnAnswerSaysWhere) {
  imposter.Add(
      {.method = "POST", .path = "/identity/v3/auth/tokens", .status = 201, .body = "{\"token\": {"});
  Error error = Failure();
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_EQ(
      error.message(),
      "cloud vendor: logging in at http://cloud.example/identity/v3: the answer, 201, contains no token");
}

// Many callers at once must not get the account locked.
TEST_F(SessionTest, ARefusedLoginIsNotRepeatedAtOnce) {
  config->cloud_config.credentials.options["password"] = "wrong-password";
  for (int i = 0; i < 10; ++i) Failure();
  EXPECT_EQ(imposter.Count("POST", "/identity/v3/auth/tokens"), 1);
  time.Advance(16s);
  Failure();
  EXPECT_EQ(imposter.Count("POST", "/identity/v3/auth/tokens"), 2);
}

// D-97: the version is read from an address that names none.
TEST_F(SessionTest, TheIdentityVersionIsFound) {
  config->cloud_config.credentials.options["auth_url"] = base + "/identity";
  Call();
  EXPECT_EQ(imposter.Count("GET", "/identity"), 1);
  EXPECT_EQ(imposter.Count("POST", "/identity/v3/auth/tokens"), 1);
}

TEST_F(SessionTest, AServiceThatIsMissing) {
  config->cloud_config.region = "Elsewhere";
  Error error = Failure();
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("no compute service"), HasSubstr("Elsewhere")));
}

// D-90
TEST_F(SessionTest, ABusyServiceIsLeftAlone) {
  Call();
  imposter.Add(
      {.method = "POST", .path = "/compute/v2.1/servers", .status = 429, .headers = {{"Retry-After", "30"}}});
  SteadyTime before = time.loop().SteadyNow();
  EXPECT_EQ(Call("POST", "/servers").status, 202);
  EXPECT_GE(time.loop().SteadyNow() - before, 30s);
  EXPECT_EQ(imposter.servers.size(), 1u);
}

// RATE-2, RATE-3, RATE-4
TEST_F(SessionTest, AServiceThatIsSlowOrSilentIsCalledLessUntilItIsWell) {
  struct Rates : driver::ProviderObserver {
    void ApiRateChanged(const driver::ApiRate& rate) override { share[rate.budget] = rate.share; }
    std::map<std::string, double> share;
  } rates;
  options_.metrics = {&rates, ProviderName("cloud"), "openstack"};
  for (int i = 0; i < 12; ++i) Call();
  EXPECT_TRUE(rates.share.empty());
  imposter.latency = 4s;
  for (int i = 0; i < 3; ++i) Call();
  EXPECT_THAT(rates.share, ::testing::ElementsAre(::testing::Pair("compute", 0.5)));
  imposter.latency = Duration::zero();
  time.Advance(1s);
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers", .breaks = true});
  Call();
  EXPECT_LT(rates.share["compute"], 0.4);
  time.Advance(1min);
  Call();
  EXPECT_EQ(rates.share["compute"], 1);
}

TEST_F(SessionTest, AServiceThatStaysBusyFailsInTheEnd) {
  Call();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers", .status = 429, .times = 100});
  EXPECT_EQ(Failure().verdict(), Verdict::kRateLimited);
}

// As often as clouds.yaml says for the service.
TEST_F(SessionTest, CallsOfABusyServiceAreRepeatedAsConfigured) {
  config->cloud_config.Of(Service::kImage).status_code_retries = 2;
  config->cloud_config.Of(Service::kCompute).status_code_retries = 0;
  Call();
  Call("GET", "/images", Service::kImage);
  imposter.Add({.method = "GET", .path = "/image/v2/images", .status = 503, .times = 100});
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers", .status = 503, .times = 100});
  imposter.Add({.method = "GET", .path = "/network/v2.0/ports", .status = 503, .times = 100});
  imposter.ClearCalls();
  Failure("GET", "/images", Service::kImage);
  EXPECT_EQ(imposter.Count("GET", "/image/v2/images"), 3);
  Failure();
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/servers/detail"), 1);
  Failure("GET", "/ports", Service::kNetwork);
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/ports"), 6) << "five repetitions unless configured";
}

class MicroversionTest : public SessionTest {
 protected:
  void Configure(Service service, VersionNumber version) {
    config->cloud_config.Of(service).default_microversion = version;
  }
  std::string Header(const std::string& path, const std::string& name = "openstack-api-version") {
    const auto& headers = imposter.LastCall("GET", path)->headers;
    return headers.contains(name) ? headers.at(name) : "";
  }
  const std::string volumes = "/volume/v3/9e6b19cfd71541fb91c6ec097a75cc0a/volumes/detail";
};

TEST_F(MicroversionTest, EachServiceGetsItsOwn) {
  Configure(Service::kCompute, {2, 60});
  Configure(Service::kBlockStorage, {3, 59});
  Call();
  EXPECT_EQ(Header("/compute/v2.1/servers/detail"), "compute 2.60");
  EXPECT_EQ(Header("/compute/v2.1/servers/detail", "x-openstack-nova-api-version"), "2.60");
  Call("GET", "/volumes/detail", Service::kBlockStorage);
  EXPECT_EQ(Header(volumes), "volume 3.59");
  EXPECT_EQ(Header(volumes, "x-openstack-nova-api-version"), "");
}

TEST_F(MicroversionTest, NoneIsNamedUnlessConfigured) {
  Call();
  EXPECT_EQ(Header("/compute/v2.1/servers/detail"), "");
  Call("GET", "/volumes/detail", Service::kBlockStorage);
  EXPECT_EQ(Header(volumes), "");
}

TEST_F(MicroversionTest, AnUnsupportedOneIsReportedAtFirstUse) {
  Configure(Service::kCompute, {2, 99});
  Configure(Service::kBlockStorage, {3, 71});
  Error error = Failure();
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("microversion 2.99 of the compute service"),
                                     HasSubstr("between 2.1 and 2.93")));
  EXPECT_THAT(Failure("GET", "/volumes/detail", Service::kBlockStorage).message(),
              HasSubstr("between 3.0 and 3.70"));
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/servers/detail"), 0);
}

// `networks: auto` needs 2.37.
TEST_F(MicroversionTest, ADefaultBoundsWhatCallsMayName) {
  Configure(Service::kCompute, {2, 36});
  EXPECT_FALSE(time.Run(session().TakesMicroversion({2, 37})));
  EXPECT_TRUE(time.Run(session().TakesMicroversion({2, 36})));
}

// D-90
TEST_F(SessionTest, ChangesKeepTheRate) {
  options_.rate = 2.0;
  Call();
  SteadyTime before = time.loop().SteadyNow();
  for (int i = 0; i < 4; ++i) Call("POST", "/servers");
  Call();
  EXPECT_EQ(time.loop().SteadyNow() - before, 6s);
}

TEST_F(SessionTest, CallsInProgressAreLimited) {
  Call();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .times = 100, .hangs = true});
  imposter.ClearCalls();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](Session& session) -> Task<> {
    ApiCall list;
    list.path = "/servers/detail";
    co_await session.Call(std::move(list));
  };
  for (int i = 0; i < 30; ++i) tasks.Spawn("call", call(session()));
  time.Advance(1s);
  EXPECT_EQ(imposter.calls().size(), 10u);
  imposter.ClearCalls();
  ApiCall change;
  change.method = "DELETE";
  change.path = "/servers/x";
  EXPECT_THROW(time.Run(session().Call(std::move(change))), Error);
  EXPECT_EQ(imposter.calls().size(), 1u) << "changes do not queue behind reads, nor reads behind changes";
  time.Run(tasks.Stop());
}

struct Mapping {
  int status;
  std::string body;
  Verdict verdict;
  std::string text;
};

TEST_F(SessionTest, FaultsAreMappedOnceAndKeepTheirText) {
  Call();
  const Mapping mappings[] = {
      {400, R"({"badRequest":{"message":"Invalid imageRef provided.","code":400}})", Verdict::kInvalid,
       "Invalid imageRef"},
      {403, R"({"forbidden":{"message":"Policy doesn't allow it","code":403}})", Verdict::kInvalid, "Policy"},
      {403, R"({"forbidden":{"message":"Quota exceeded for cores","code":403}})", Verdict::kQuota,
       "for cores"},
      {404, R"({"itemNotFound":{"message":"Flavor gone","code":404}})", Verdict::kNotFound, "Flavor gone"},
      {409, R"({"conflictingRequest":{"message":"in task_state deleting","code":409}})", Verdict::kConflict,
       "deleting"},
      {409, R"({"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources"}})",
       Verdict::kQuota, "resources"},
      {413, "", Verdict::kInvalid, "Payload Too Large"},
      {500, "<html><head><title>500</title></head><body><h1>Oops</h1></body></html>", Verdict::kRetry,
       "Oops"},
      {502, "<html>Bad Gateway</html>", Verdict::kRetry, "Bad Gateway"},
  };
  for (const Mapping& mapping : mappings) {
    imposter.Add(
        {.method = "POST", .path = "/compute/v2.1/servers", .status = mapping.status, .body = mapping.body});
    Error error = Failure("POST", "/servers");
    EXPECT_EQ(error.verdict(), mapping.verdict) << mapping.status;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("POST compute /servers at http://cloud.example/compute"),
                                       HasSubstr(mapping.text)));
  }
}

TEST_F(SessionTest, AnAnswerThatIsNotJsonIsAnError) {
  Call();
  for (const char* body : {"<html>a login page</html>", R"({"servers": [{"id)", "\xff\xfe"}) {
    imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .status = 200, .body = body});
    EXPECT_EQ(Failure().verdict(), Verdict::kRetry) << body;
  }
}

// Reading a list may be repeated; creating a server may not, since it may have been created.
TEST_F(SessionTest, BrokenConnectionsAreTriedAgainWhereThatIsSafe) {
  Call();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .breaks = true});
  EXPECT_EQ(Call().status, 200);
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .breaks = true, .has_effect = true});
  EXPECT_EQ(Failure("POST", "/servers").verdict(), Verdict::kRetry);
  EXPECT_EQ(imposter.servers.size(), 1u);
}

TEST_F(SessionTest, AServiceThatHangsIsGivenUp) {
  Call();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .times = 2, .hangs = true});
  EXPECT_EQ(Failure().verdict(), Verdict::kRetry);
}

TEST_F(SessionTest, ListsHavePages) {
  imposter.page_size = 2;
  for (int i = 0; i < 5; ++i) imposter.AddServer({});
  EXPECT_EQ(time.Run(ListServers(session())).size(), 5u);
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/servers/detail"), 3);
}

TEST_F(SessionTest, EndlessPagesAreDetected) {
  Call();
  std::string body =
      R"({"servers": [{"id": "1"}], "servers_links": [{"rel": "next", "href": "x?marker=1"}]})";
  imposter.Add(
      {.method = "GET", .path = "/compute/v2.1/servers/detail", .status = 200, .body = body, .times = 9});
  try {
    time.Run(ListServers(session()));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("Endless pagination loop"));
  }
}

TEST_F(SessionTest, NothingSecretIsLogged) {
  log::SetLevel("nodepool", log::Level::kDebug);
  log::Capture capture;
  Call();
  imposter.DropTokens();
  Call();
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .status = 500, .body = "no"});
  Failure("POST", "/servers");
  EXPECT_EQ(capture.Count("secret"), 0);
  EXPECT_EQ(capture.Count("token-"), 0);
  log::SetLevel("nodepool", log::Level::kInfo);
}

// The driver over the real HTTP client and a real connection.

class OverHttpTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    server_.Listen("127.0.0.1", 0);
    real_.SetBase("http://127.0.0.1:" + std::to_string(server_.port()));
    config->cloud_config.credentials.options["auth_url"] = real_.base() + "/identity";
    driver::cloud::AdapterEnvironment environment{{loop_, random, blocking_pool}, framework_, this};
    auto client = std::make_unique<net::CurlClient>(loop_, blocking_pool, "nodepool/test");
    over_http_ = std::make_unique<OpenstackAdapter>(environment, config, std::move(client));
  }
  void TearDown() override {
    RunToEnd(loop_, over_http_->Stop());
    over_http_.reset();
    RunToEnd(loop_, server_.Stop());
    OpenstackTest::TearDown();
  }

  Loop loop_;
  driver::cloud::Framework framework_;
  testing::OpenstackImposter real_{loop_, ""};
  net::HttpServer server_{loop_,
                          [this](net::HttpRequest request) { return real_.Answer(std::move(request)); },
                          net::HttpLimits{.body_bytes = 1 << 20}};
  std::unique_ptr<OpenstackAdapter> over_http_;
};

TEST_F(OverHttpTest, AServerLives) {
  driver::cloud::CreateParameters parameters;
  parameters.hostname = "np1";
  parameters.pool = config->pools.begin()->second;
  parameters.label = parameters.pool->labels.begin()->second;
  parameters.metadata = {{"nodepool_node_id", "1"}, {"nodepool_provider_name", "cloud"}};
  driver::testing::Recorder face;
  auto instance = RunToEnd(loop_, over_http_->Create(face, parameters));
  EXPECT_EQ(instance.external_id, face.external_id);
  EXPECT_EQ(instance.interface_ip, instance.private_ipv4);
  EXPECT_EQ(real_.LastCall("POST", "/compute/v2.1/servers")->headers.at("user-agent"), "nodepool/test");
  EXPECT_EQ(RunToEnd(loop_, over_http_->ListInstances()).size(), 1u);
  RunToEnd(loop_, over_http_->Delete(face, face.external_id));
  EXPECT_TRUE(real_.servers.empty());
}

// The service receives exactly the file.
TEST_F(OverHttpTest, AnImageIsUploaded) {
  std::string path = ::testing::TempDir() + "over_http_test.qcow2";
  std::string contents;
  for (int i = 0; i < 200'000; ++i) contents += static_cast<char>(i * 7919 >> 3);
  std::ofstream(path) << contents;
  driver::ImageUploadParameters upload;
  upload.name = "debian-1";
  upload.filename = path;
  upload.format = "qcow2";
  upload.metadata = {{"nodepool_build_id", "b1"}};
  std::string id = RunToEnd(loop_, over_http_->UploadImage(upload));
  EXPECT_TRUE(real_.images.at(id).contents == contents);
  std::filesystem::remove(path);
}

// Lists longer than what is parsed on the loop.
TEST_F(OverHttpTest, LongListsAreRead) {
  real_.page_size = 300;
  for (int i = 0; i < 1000; ++i) real_.AddServer({{"some", std::string(100, 'x')}});
  EXPECT_EQ(RunToEnd(loop_, over_http_->ListInstances()).size(), 1000u);
  EXPECT_EQ(real_.Count("GET", "/compute/v2.1/servers/detail"), 4);
}

}  // namespace

}  // namespace nodepool::drivers::openstack
