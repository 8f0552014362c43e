// An example for authors of drivers for clouds with an HTTP API: a toy cloud, and an adapter to it that keeps
// the contract.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/testing/virtual_time.h"
#include "base/json_fields.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/json_calls.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/api/scripted_client_for_test.h"
#include "driver/cloud/api/url_text.h"
#include "driver/testing/checks.h"
#include "driver/testing/contract.h"
#include "net/http/http.h"

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

// --- The cloud ------------------------------------------------------------------------------------------

// POST /login, GET /quota, GET and POST /machines, DELETE /machines/<id>. Every seventh call is refused as
// too frequent, and every fiftieth ends the token.
class ToyCloud {
 public:
  net::HttpReply Answer(const net::HttpCall& call) {
    ++calls;
    net::HttpRequest request;
    net::ParseTarget(std::string_view(call.url).substr(kBase.size()), request);
    if (request.path == "/login") return Login(call);
    if (calls % 50 == 0) token_ = "none";
    if (HeaderOf(call, "Authorization") != "Bearer " + token_) return Refusal(401, "Expired", "log in again");
    if (calls % 7 == 0) return TooOften();
    if (request.path == "/quota") return Json({{"machines", 10}, {"cores", 40}, {"ram", 81920}});
    if (call.method == "POST") return Make(json::parse(call.body).as_object());
    if (call.method == "DELETE") return Delete(request.path.substr(std::string_view("/machines/").size()));
    return List(request.Parameter("after"));
  }

  static constexpr std::string_view kBase = "http://toy.example";
  int calls = 0;
  int logins = 0;
  int refusals = 0;  // of calls that were too frequent
  struct Machine {
    json::object record;
    int lists_until_next = 1;  // state
  };
  std::map<std::string, Machine> machines;

 private:
  static net::HttpReply Json(json::object body) { return {200, {}, json::serialize(body)}; }
  static net::HttpReply Refusal(int status, std::string code, std::string words) {
    json::object fault{{"code", code}, {"words", words}};
    return {status, {}, json::serialize(json::object{{"fault", fault}})};
  }
  net::HttpReply TooOften() {
    ++refusals;
    net::HttpReply reply = Refusal(429, "TooOften", "slow down");
    reply.headers.emplace_back("retry-after", "1");
    return reply;
  }
  net::HttpReply Login(const net::HttpCall& call) {
    if (call.body != R"({"user":"ci","password":"secret"})") return Refusal(403, "Unknown", "who are you?");
    token_ = "token-" + std::to_string(++logins);
    return Json({{"token", token_}, {"seconds", 300}});
  }
  net::HttpReply Make(json::object wanted) {
    if (machines.size() >= 10) return Refusal(403, "NoRoom", "the account has ten machines");
    std::string id = "m" + std::to_string(++last_id_);
    wanted["id"] = id;
    wanted["state"] = "starting";
    machines[id] = {wanted};
    return Json(std::move(wanted));
  }
  net::HttpReply Delete(const std::string& id) {
    if (!machines.contains(id)) return Refusal(404, "Missing", "no machine " + id);
    machines[id].record["state"] = "stopping";
    machines[id].lists_until_next = 1;
    return {204, {}, ""};
  }
  // A page of two machines, and where the next page begins.
  net::HttpReply List(const std::string& after) {
    json::array page;
    auto next = machines.upper_bound(after);
    std::string last;
    while (next != machines.end() && page.size() < 2) {
      auto& [id, machine] = *next;
      last = id;
      page.push_back(machine.record);
      bool moves_on = machine.lists_until_next-- == 0;
      bool is_gone = moves_on && machine.record["state"] == "stopping";
      if (moves_on) machine.record["state"] = "running";
      next = is_gone ? machines.erase(next) : std::next(next);
    }
    return Json({{"machines", page}, {"next", next == machines.end() ? "" : last}});
  }

  std::string token_ = "none";
  int last_id_ = 0;
};

// --- The adapter ----------------------------------------------------------------------------------------

// {"fault": {"code": "NoRoom", "words": "..."}}
Fault ReadToyFault(int status, std::string_view body) {
  Fault fault = ReadFault(status, body);
  boost::system::error_code error;
  json::value document = json::parse(body, error);
  const json::object* content = error ? nullptr : ObjectIn(document, "fault");
  if (content == nullptr) return fault;
  fault.code = TextIn(*content, "code");
  fault.text = TextIn(*content, "words");
  if (fault.code == "NoRoom") fault.verdict = Verdict::kQuota;
  return fault;
}

struct ToyToken {
  std::string text;
  WallTime expires;
};

class ToySigner : public Signer {
 public:
  ToySigner(Loop& loop, net::HttpClient& http)
      : loop_(loop), http_(http), tokens_(loop, [this] { return LogIn(); }) {}

  Task<Renew> Sign(net::HttpCall& call) override {
    std::shared_ptr<const ToyToken> token = co_await tokens_.Get();
    call.headers.emplace_back("Authorization", "Bearer " + token->text);
    co_return [this, token](const net::HttpReply&) { tokens_.Discard(token); };
  }

 private:
  Task<ToyToken> LogIn() {
    net::HttpCall call;
    call.method = "POST";
    call.url = std::string(ToyCloud::kBase) + "/login";
    call.body = R"({"user":"ci","password":"secret"})";
    net::HttpReply reply = co_await http_.Send(std::move(call));
    if (reply.status >= 400) {
      throw MakeApiError("logging in", reply.status, ReadToyFault(reply.status, reply.body));
    }
    json::object content = json::parse(reply.body).as_object();
    std::chrono::seconds life(static_cast<int>(NumberIn(content, "seconds")));
    co_return ToyToken{TextIn(content, "token"), loop_.Now() + life};
  }

  Loop& loop_;
  net::HttpClient& http_;
  CredentialSource<ToyToken> tokens_;
};

struct ToyMachine {
  std::string name;
  std::string state;
  std::map<std::string, std::string> metadata;
};
using ToyMachines = std::map<std::string, ToyMachine>;

class ToyAdapter : public Adapter {
 public:
  ToyAdapter(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http)
      : signer_(loop, http),
        client_(
            loop, pool, random, http, signer_, logger_,
            {.cloud = "toy", .read_fault = &ReadToyFault, .change_rate = RateLimiter::Settings{100ms, 5}}),
        tasks_(loop, logger_),
        machines_(tasks_, random, logger_, "machines of the toy cloud", [this] { return ListAll(); }) {}

  Task<Instance> Create(MachineReport& machine, CreateParameters parameters) override {
    machine.SetState("creating the machine");
    ApiRequest request = Request("POST", "/machines");
    request.call.body = json::serialize(BodyFor(parameters));
    ApiReply reply = co_await client_.CallJson(std::move(request));
    std::string id = TextIn(reply.body.as_object(), "id");
    json::value external_id(id);
    co_await machine.SetExternalId(std::move(external_id));
    machine.SetState("starting the machine");
    auto is_running = [&id](const ToyMachines& machines) {
      auto found = machines.find(id);
      return found != machines.end() && found->second.state == "running";
    };
    auto listing = co_await machines_.Until(is_running);
    co_return Describe(id, listing.items->at(id));
  }

  Task<> Delete(MachineReport& machine, json::value external_id) override {
    machine.SetState("deleting the machine");
    std::string id(external_id.as_string());
    co_await client_.Call(Request("DELETE", "/machines/" + id));  // kNotFound: it is gone
    auto is_gone = [&id](const ToyMachines& machines) { return !machines.contains(id); };
    co_await machines_.Until(is_gone);
  }

  Task<std::vector<Instance>> ListInstances() override {
    auto listing = co_await machines_.NotOlderThan(Duration::zero());
    std::vector<Instance> instances;
    for (const auto& [id, machine] : *listing.items) instances.push_back(Describe(id, machine));
    co_return instances;
  }

  Task<std::vector<Resource>> ListResources() override {
    auto listing = co_await machines_.NotOlderThan(Duration::zero());
    std::vector<Resource> resources;
    for (const auto& [id, machine] : *listing.items) resources.push_back({"machine", id, machine.metadata});
    co_return resources;
  }

  Task<> DeleteResource(Resource resource) override {
    co_await client_.Call(Request("DELETE", "/machines/" + resource.id));
  }

  Task<QuotaInformation> QuotaLimits() override {
    ApiReply reply = co_await client_.CallJson(Request("GET", "/quota"));
    const json::object& limits = reply.body.as_object();
    co_return QuotaInformation::Limit({{"instances", NumberIn(limits, "machines")},
                                       {"cores", NumberIn(limits, "cores")},
                                       {"ram", NumberIn(limits, "ram")}});
  }

  Task<> Stop() override { co_await tasks_.Stop(); }

 private:
  static ApiRequest Request(std::string method, std::string path) {
    ApiRequest request;
    request.service = "machines";
    request.name = path.substr(1, path.find('/', 1) - 1);
    request.text = method + " " + path;
    request.call.method = std::move(method);
    request.call.url = std::string(ToyCloud::kBase) + path;
    return request;
  }

  static json::object BodyFor(const CreateParameters& parameters) {
    json::object metadata;
    for (const auto& [key, value] : parameters.metadata) metadata[key] = value;
    metadata["for"] = FillTemplate("{request.tenant_name}", parameters.request_id, parameters.request);
    return {{"name", parameters.hostname}, {"metadata", std::move(metadata)}};
  }

  Task<Page<json::object>> ReadPage(std::string next) {
    ApiReply reply = co_await client_.CallJson(Request("GET", "/machines?after=" + PercentEncoded(next)));
    Page<json::object> page;
    for (const json::value& entry : reply.body.at("machines").as_array()) {
      page.items.push_back(entry.as_object());
    }
    page.next = TextIn(reply.body.as_object(), "next");
    co_return page;
  }

  Task<ToyMachines> ListAll() {
    auto read = [this](std::string next) { return ReadPage(std::move(next)); };
    std::vector<json::object> entries = co_await ReadPages<json::object>("machines", read);
    ToyMachines machines;
    for (const json::object& entry : entries) {
      ToyMachine& machine = machines[TextIn(entry, "id")];
      machine.name = TextIn(entry, "name");
      machine.state = TextIn(entry, "state");
      const json::object& metadata = entry.at("metadata").as_object();
      for (const auto& [key, value] : metadata) machine.metadata[key] = TextIn(metadata, key);
    }
    co_return machines;
  }

  static Instance Describe(const std::string& id, const ToyMachine& machine) {
    Instance instance;
    instance.external_id = id;
    instance.name = machine.name;
    instance.metadata = machine.metadata;
    instance.interface_ip = "192.0.2.1";
    instance.quota = QuotaInformation::OneInstance();
    return instance;
  }

  log::Logger logger_{"test.toy"};
  ToySigner signer_;
  ApiClient client_;
  TaskGroup tasks_;
  ListCache<ToyMachines> machines_;
};

// --- The tests ------------------------------------------------------------------------------------------

class ToyCloudTest : public ::testing::Test {
 protected:
  void SetUp() override {
    label->name = LabelName("small");
    pool_config->name = PoolName("main");
    pool_config->Offer(label);
  }
  void TearDown() override { time.Run(adapter.Stop()); }

  nodepool::testing::VirtualTime time;
  SeededRandom random{1};
  BlockingPool pool{0};
  ToyCloud cloud;
  ScriptedClient http{time.loop(), [this](const net::HttpCall& call) { return cloud.Answer(call); }};
  ToyAdapter adapter{time.loop(), pool, random, http};
  std::shared_ptr<LabelConfig> label = std::make_shared<LabelConfig>();
  std::shared_ptr<PoolConfig> pool_config = std::make_shared<PoolConfig>();
};

TEST_F(ToyCloudTest, ItsAdapterKeepsTheContract) {
  driver::testing::Subject subject{time.loop(), adapter, ProviderName("contract"), pool_config, label};
  subject.stall = [this](bool is_stalled) { http.is_silent = is_stalled; };
  for (const auto& result : time.Run(driver::testing::RunContract(std::move(subject)), 1000h)) {
    EXPECT_EQ(result.status, driver::testing::CheckResult::Status::kPassed)
        << result.check << ": " << result.detail;
  }
  EXPECT_TRUE(cloud.machines.empty());
  EXPECT_GT(cloud.refusals, 10);
  EXPECT_GT(cloud.logins, 2);
}

TEST_F(ToyCloudTest, AFullAccountIsAQuota) {
  for (int i = 0; i < 10; ++i) cloud.machines["other" + std::to_string(i)];
  CreateParameters parameters;
  parameters.label = label;
  parameters.pool = pool_config;
  driver::testing::Recorder report;
  Task<Outcome<Instance>> creation = Attempt(adapter.Create(report, std::move(parameters)));
  Outcome<Instance> made = time.Run(std::move(creation));
  EXPECT_TRUE(FailedWith(made, Verdict::kQuota));
  EXPECT_EQ(made.error().message(), "POST /machines: 403 the account has ten machines");
  cloud.machines.clear();
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
