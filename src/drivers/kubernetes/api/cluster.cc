#include "drivers/kubernetes/api/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/backoff.h"
#include "async/task.h"
#include "base/json_fields.h"
#include "base/small_file.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr std::size_t kReadHere = 64 * 1024;

WatchEvent::Kind KindOf(const std::string& type) {
  using Kind = WatchEvent::Kind;
  if (type == "ERROR") return Kind::kError;
  if (type == "BOOKMARK") return Kind::kBookmark;
  return type == "DELETED" ? Kind::kDeleted : Kind::kChanged;
}

std::optional<WatchEvent> Read(std::string_view line) {
  boost::system::error_code error;
  json::value parsed = json::parse(line, error);
  const json::object* source = error ? nullptr : ObjectIn(parsed, "object");
  if (source == nullptr) return std::nullopt;
  WatchEvent event;
  event.kind = KindOf(TextIn(parsed.as_object(), "type"));
  if (event.kind == WatchEvent::Kind::kError) return event;
  if (const json::object* metadata = ObjectIn(*source, "metadata"))
    event.version = TextIn(*metadata, "resourceVersion");
  event.object = ReadObject(*source);
  event.object.weight = WeightOf(line.size());
  return event;
}

}  // namespace

Task<std::optional<WatchEvent>> ReadEvent(BlockingPool& pool, std::string line) {
  if (line.size() <= kReadHere) co_return Read(line);
  auto read = [line = std::move(line)] { return Read(line); };
  std::optional<WatchEvent> event = co_await OnBlockingPool(pool, std::move(read));
  co_return event;
}

bool LineQueue::Add(std::string_view text) {
  if (is_closed_) return false;
  waiting_ += text.size();
  if (waiting_ > limits_.waiting)
    return Refuse(fmt::format("more than {} KiB of the answer wait to be handled", limits_.waiting >> 10));
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    begun_.append(text.substr(0, end));
    text.remove_prefix(end + 1);
    --waiting_;
    if (begun_.size() > limits_.line) break;
    if (!begun_.empty()) lines_.push_back(std::exchange(begun_, {}));
  }
  begun_.append(text);
  if (begun_.size() > limits_.line)
    return Refuse(fmt::format("a line of the answer is longer than {} KiB", limits_.line >> 10));
  changed_.Set();
  return true;
}

bool LineQueue::Refuse(std::string why) {
  Close(Failure(Error(Verdict::kFail, std::move(why))));
  return false;
}

void LineQueue::Close(std::optional<Failure> failure) {
  if (std::exchange(is_closed_, true)) return;
  failure_ = std::move(failure);
  changed_.Set();
}

Task<std::optional<std::string>> LineQueue::Next() {
  while (lines_.empty() && !is_closed_) {
    changed_.Reset();
    co_await changed_.Wait();
  }
  if (lines_.empty() && failure_) failure_->Rethrow();
  std::optional<std::string> line;
  if (!lines_.empty()) {
    line = std::move(lines_.front());
    lines_.pop_front();
    waiting_ -= line->size();
  }
  co_return line;
}

namespace {

// Credentials are fetched again five minutes before they expire, those that last for less after half of their
// time: a token file is read each minute.
constexpr Duration kMargin = std::chrono::minutes(5);
constexpr Duration kTokenFileLasts = std::chrono::minutes(2);
// The status that makes the source wait before it asks again.
constexpr int kUnauthorized = 401;

FilesRead ReadAll(const Places& places, const std::optional<std::string>& context) {
  FilesRead read{ReadConnection(places, context), ""};
  const std::string& path = read.connection.user.token_file;
  if (!path.empty()) read.token = ReadTextFile(path);
  return read;
}

void SetBearer(Access& access, std::string token) {
  access.headers.emplace_back("Authorization", "Bearer " + token);
  access.token = std::move(token);
}

}  // namespace

Task<FilesRead> ReadFilesOf(BlockingPool& pool, Places places, std::optional<std::string> context) {
  auto work = [places = std::move(places), context = std::move(context)] { return ReadAll(places, context); };
  FilesRead read = co_await OnBlockingPool(pool, std::move(work));
  co_return read;
}

AccessSource::AccessSource(Loop& loop, process::Runner& runner, process::Environment environment,
                           ReadFiles read_files)
    : loop_(loop),
      runner_(runner),
      environment_(std::move(environment)),
      read_files_(std::move(read_files)),
      source_(
          loop, [this] { return Read(); }, kMargin) {}

Task<std::shared_ptr<const Access>> AccessSource::Get() {
  std::shared_ptr<const Access> access = co_await source_.Get();
  WatchFiles(access);
  co_return access;
}

Task<AccessSource::Renew> AccessSource::Sign(net::HttpCall& call) {
  std::shared_ptr<const Access> access = co_await Get();
  call.url = access->server + call.url;
  call.tls = access->tls;
  call.proxy = access->proxy;
  call.headers.insert(call.headers.end(), access->headers.begin(), access->headers.end());
  co_return [this, access](const net::HttpReply&) { source_.Discard(access); };
}

Task<Access> AccessSource::Read() {
  Task<FilesRead> reading = read_files_();
  FilesRead read = co_await std::move(reading);
  const Connection& connection = read.connection;
  const User& user = connection.user;
  Access access;
  access.server = connection.server;
  access.proxy = connection.proxy;
  access.ca_pem = connection.ca_pem;
  access.files = connection.files;
  access.headers = user.impersonation;
  access.expires = user.certificate_ends;
  net::TlsSettings tls;
  tls.verifies_peer = connection.verifies_tls;
  tls.ca_pem = connection.verifies_tls ? connection.ca_pem : "";
  tls.server_name = connection.server_name;
  tls.certificate_pem = user.certificate_pem;
  tls.key_pem = user.key_pem;
  // The first that there is; a client certificate is used beside any of them (driver-kubernetes.md 3.2).
  if (!user.token.empty()) {
    SetBearer(access, user.token);
  } else if (!read.token.empty()) {
    SetBearer(access, read.token);
    // Such a file is meant to rotate, so it is read again soon.
    access.expires = std::min(access.expires, loop_.Now() + kTokenFileLasts);
  } else if (user.exec) {
    co_await UsePlugin(connection, tls, access);
  } else if (!user.username.empty()) {
    access.headers.emplace_back("Authorization", "Basic " + Base64(user.username + ":" + user.password));
  }
  access.tls = std::make_shared<const net::TlsSettings>(std::move(tls));
  co_return access;
}

Task<> AccessSource::UsePlugin(const Connection& connection, net::TlsSettings& tls, Access& access) {
  Task<PluginCredential> run = RunPlugin(runner_, *connection.user.exec, connection, environment_);
  Outcome<PluginCredential> credential = co_await Attempt(std::move(run));
  if (!credential) throw api::ApiError(Verdict::kRetry, credential.error().message(), kUnauthorized);
  if (!credential->token.empty()) {
    SetBearer(access, std::move(credential->token));
  } else {
    tls.certificate_pem = std::move(credential->certificate_pem);
    tls.key_pem = std::move(credential->key_pem);
  }
  if (credential->expires) access.expires = std::min(access.expires, *credential->expires);
}

// A renamed file may be missing for a moment: what cannot be read then is read again by the next call.
void AccessSource::WatchFiles(const std::shared_ptr<const Access>& access) {
  if (watched_ == access) return;
  watched_ = access;
  watch_.reset();
  if (access->files.empty()) return;
  watch_ = std::make_unique<FileWatch>(loop_, access->files, [this] { source_.Discard(watched_); });
}

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
