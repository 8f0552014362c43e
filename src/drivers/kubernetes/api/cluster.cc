#include "drivers/kubernetes/api/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "async/cleanup.h"
#include "async/pace.h"
#include "base/json_fields.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/kubernetes/api/object.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr const char* kService = "kubernetes";
constexpr int kPageSize = 500;
constexpr int kListRepeats = 3;
constexpr net::HttpTimeouts kTimeouts{.connect = std::chrono::seconds(10),
                                      .answer = std::chrono::seconds(30),
                                      .stall = std::chrono::seconds(30),
                                      .total = std::chrono::minutes(2)};

api::ApiClient::Options ClientOptions(std::string name, api::CallMetrics metrics) {
  api::ApiClient::Options options;
  options.cloud = std::move(name);
  options.read_fault = &ReadStatus;
  options.metrics = std::move(metrics);
  return options;
}

std::string WithQuery(std::string path, const std::string& query) {
  if (query.empty()) return path;
  path += path.find('?') == std::string::npos ? '?' : '&';
  return path + query;
}

}  // namespace

Cluster::Cluster(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, AccessSource& access,
                 std::string name, api::CallMetrics metrics)
    : loop_(loop),
      pool_(pool),
      http_(http),
      access_(access),
      name_(std::move(name)),
      client_(loop, pool, random, http, access, logger_, ClientOptions(name_, std::move(metrics))) {}

api::ApiRequest Cluster::Request(std::string method, std::string path,
                                 std::optional<json::object> body) const {
  api::ApiRequest request;
  request.service = kService;
  request.name = CollectionOf(path);
  request.text = fmt::format("{} {} of {}", method, path.substr(0, path.find('?')), name_);
  request.retries = 3;
  request.call.method = std::move(method);
  request.call.url = std::move(path);
  request.call.timeouts = kTimeouts;
  request.call.headers.emplace_back("Accept", "application/json");
  if (body) {
    request.call.headers.emplace_back("Content-Type", "application/json");
    request.call.body = json::serialize(*body);
  }
  return request;
}

Task<json::object> Cluster::Call(api::ApiRequest request) {
  std::string text = request.text;
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  if (!reply.body.is_object())
    throw Error(Verdict::kRetry, text + " was answered with something that is no JSON object");
  co_return std::move(reply.body.as_object());
}

Task<json::object> Cluster::Get(std::string path) {
  return Call(Request("GET", std::move(path), std::nullopt));
}

Task<json::object> Cluster::Create(std::string collection, json::object body) {
  api::ApiRequest request = Request("POST", std::move(collection), std::move(body));
  request.may_be_sent_again = true;
  return Call(std::move(request));
}

Task<json::object> Cluster::MergePatch(std::string path, json::object body) {
  api::ApiRequest request = Request("PATCH", std::move(path), std::move(body));
  request.call.headers.back().second = "application/merge-patch+json";
  return Call(std::move(request));
}

Task<bool> Cluster::Delete(std::string path, json::object options) {
  std::optional<json::object> body;
  if (!options.empty()) body = std::move(options);
  Task<json::object> call = Call(Request("DELETE", std::move(path), std::move(body)));
  Outcome<json::object> deleted = co_await Attempt(std::move(call));
  if (deleted) co_return true;
  int status = api::StatusOf(deleted);
  if (status == 404) co_return false;
  // It is being deleted already.
  if (status != 409) deleted.error().Rethrow();
  co_return true;
}

Task<ObjectList> Cluster::List(std::string collection, std::string selector) {
  for (int repeats = 0;; ++repeats) {
    Task<ObjectList> reading = ListOnce(collection, selector);
    Outcome<ObjectList> list = co_await Attempt(std::move(reading));
    if (list) co_return std::move(*list);
    // The place where a page goes on is too old: the list took longer than the cluster keeps its versions.
    if (api::StatusOf(list) != 410 || repeats == kListRepeats) list.error().Rethrow();
  }
}

Task<ObjectList> Cluster::ListOnce(std::string collection, std::string selector) {
  std::string version;
  std::string base =
      WithQuery(WithQuery(std::move(collection), selector), fmt::format("limit={}", kPageSize));
  auto read = [this, &base, &version](std::string next) {
    return ReadPage(next.empty() ? base : base + "&continue=" + api::PercentEncoded(next), version);
  };
  ObjectList list;
  Task<std::vector<Object>> reading = api::ReadPages<Object>(CollectionOf(base), read);
  list.objects = co_await std::move(reading);
  list.version = std::move(version);
  co_return list;
}

Task<api::Page<Object>> Cluster::ReadPage(std::string path, std::string& version) {
  api::ApiRequest request = Request("GET", std::move(path), std::nullopt);
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  api::Page<Object> page;
  page.bytes = reply.bytes;
  if (const json::object* metadata = ObjectIn(reply.body, "metadata")) {
    page.next = TextIn(*metadata, "continue");
    version = TextIn(*metadata, "resourceVersion");
  }
  if (const json::array* items = ArrayIn(reply.body, "items")) {
    std::size_t weight = WeightOf(reply.bytes / std::max<std::size_t>(1, items->size()));
    for (const json::value& item : *items) {
      if (!item.is_object()) continue;
      page.items.push_back(ReadObject(item.as_object()));
      page.items.back().weight = weight;
    }
    page.bytes = std::max(page.bytes, weight * items->size());
  }
  co_return page;
}

Task<> Cluster::Watch(std::string path, Duration longest_silence, OnEvent on_event) {
  LineQueue lines;
  TaskGroup tasks(loop_, logger_);
  Task<> handling = HandleEvents(lines, std::move(path), longest_silence, std::move(on_event), tasks);
  auto stop = [&tasks] { return tasks.Stop(); };
  co_await WithCleanup(std::move(handling), stop);
}

Task<> Cluster::HandleEvents(LineQueue& lines, std::string path, Duration longest_silence, OnEvent on_event,
                             TaskGroup& tasks) {
  tasks.Spawn("receive " + path, Receive(path, longest_silence, lines));
  Pace pace(loop_);
  while (true) {
    std::optional<std::string> line = co_await lines.Next();
    if (!line) co_return;
    std::size_t bytes = line->size();
    Task<std::optional<WatchEvent>> reading = ReadEvent(pool_, std::move(*line));
    std::optional<WatchEvent> event = co_await std::move(reading);
    if (!event)
      throw Error(Verdict::kRetry, fmt::format("{} was answered with something that is no event", path));
    bool is_end = event->kind == WatchEvent::Kind::kError;
    on_event(std::move(*event));
    if (is_end) co_return;
    if (pace.is_due(bytes)) co_await pace.Pause();
  }
}

Task<> Cluster::Receive(std::string path, Duration longest_silence, LineQueue& lines) {
  Outcome<> ended = co_await Attempt(ReceiveAnswer(std::move(path), longest_silence, lines));
  lines.Close(ended ? std::nullopt : std::optional(ended.error()));
}

Task<> Cluster::ReceiveAnswer(std::string path, Duration longest_silence, LineQueue& lines) {
  for (bool is_second : {false, true}) {
    api::ApiRequest request = Request("GET", path, std::nullopt);
    net::HttpCall& call = request.call;
    call.timeouts.stall = longest_silence;
    call.timeouts.answer = longest_silence;
    call.timeouts.total = std::chrono::hours(1);
    call.sink = [&lines](std::string_view bytes) { return lines.Add(bytes); };
    api::Signer::Renew renew = co_await access_.Sign(call);
    net::HttpReply reply = co_await http_.Send(std::move(call));
    if (reply.status == 401 && !is_second) {
      renew(reply);
      continue;
    }
    if (reply.status >= 400) {
      api::Fault fault = ReadStatus(reply.status, reply.body);
      throw api::MakeApiError(request.text, reply.status, std::move(fault));
    }
    co_return;
  }
}

}  // namespace nodepool::drivers::kubernetes
