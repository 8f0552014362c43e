#include "drivers/kubernetes/testing/kubernetes_imposter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::testing {

namespace json = boost::json;
using net::HttpReply;

namespace {

constexpr std::string_view kServer = "https://cluster";
constexpr std::string_view kNamespacePath = "/api/v1/namespaces/";
constexpr std::string_view kProjectPath = "/apis/project.openshift.io/v1/projects";
constexpr const char* kDefaultUser = "ci";
constexpr Duration kBookmarkInterval = std::chrono::seconds(60);

HttpReply JsonReply(int status, json::object body) {
  HttpReply reply;
  reply.status = status;
  reply.body = json::serialize(body);
  return reply;
}

HttpReply Refusal(int status, const std::string& reason, const std::string& message,
                  json::array causes = {}) {
  json::object details = {{"causes", std::move(causes)}};
  return JsonReply(status, {{"kind", "Status"},
                            {"status", "Failure"},
                            {"reason", reason},
                            {"message", message},
                            {"details", std::move(details)},
                            {"code", status}});
}

std::string PathOf(const std::string& path) { return path.substr(0, path.find('?')); }

// Projects are another view of namespaces.
std::string Stored(std::string path) {
  if (path.starts_with(kProjectPath)) path = "/api/v1/namespaces" + path.substr(kProjectPath.size());
  return path;
}

std::string Unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// The value of a parameter; empty: it is not there.
std::string Parameter(const std::string& path, const std::string& name) {
  std::size_t at = path.find(name + "=");
  if (at == std::string::npos) return "";
  std::size_t begin = at + name.size() + 1;
  return Unescaped(path.substr(begin, path.find('&', begin) - begin));
}

bool Matches(const json::object& object, const std::string& selector) {
  const json::object* metadata = ObjectIn(object, "metadata");
  const json::object* labels = metadata == nullptr ? nullptr : ObjectIn(*metadata, "labels");
  std::size_t begin = 0;
  while (begin < selector.size()) {
    std::size_t end = std::min(selector.find(',', begin), selector.size());
    std::string term = selector.substr(begin, end - begin);
    std::size_t equals = term.find('=');
    std::string key = term.substr(0, equals);
    if (labels == nullptr || !labels->contains(key)) return false;
    if (equals != std::string::npos && TextIn(*labels, key) != term.substr(equals + 1)) return false;
    begin = end + 1;
  }
  return true;
}

// Whether the object at `path` is in a collection, which may be that of all namespaces.
bool IsIn(const std::string& path, const std::string& collection) {
  if (collection == "/api/v1/pods") return path.find("/pods/") != std::string::npos;
  if (!path.starts_with(collection + "/")) return false;
  return path.find('/', collection.size() + 1) == std::string::npos;
}

json::object& Metadata(json::object& object) {
  json::value& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  return metadata.as_object();
}

// The namespace in a path; empty: there is none.
std::string NamespaceIn(const std::string& path) {
  std::size_t at = path.find("/namespaces/");
  if (at == std::string::npos) return "";
  std::size_t begin = at + 12;
  std::size_t end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

// In two pieces, as a network may bring it.
void SendEvent(const net::HttpSink& sink, const std::string& type, json::object object) {
  std::string line = json::serialize(json::object{{"type", type}, {"object", std::move(object)}}) + "\n";
  std::size_t half = line.size() / 2;
  bool goes_on = sink(line.substr(0, half)) && sink(line.substr(half));
  if (!goes_on) throw net::HttpError(Verdict::kFail, "the answer was not read to its end", true);
}

}  // namespace

KubernetesImposter::~KubernetesImposter() {
  for (Clock::TimerId timer : timers_) loop_.clock().CancelTimer(timer);
}

void KubernetesImposter::Later(Duration delay, std::function<void()> action) {
  auto id = std::make_shared<Clock::TimerId>();
  *id = loop_.clock().CallAt(loop_.SteadyNow() + delay, [this, id, action = std::move(action)] {
    timers_.erase(*id);
    action();
  });
  timers_.insert(*id);
}

int KubernetesImposter::Count(const std::string& method, const std::string& path) const {
  return static_cast<int>(std::ranges::count_if(calls_, [&](const Call& call) {
    return call.method == method && PathOf(call.path).starts_with(path);
  }));
}

json::object KubernetesImposter::Posted(const std::string& collection) const {
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    if (call->method == "POST" && call->path == collection) return call->body;
  }
  return {};
}

std::vector<std::string> KubernetesImposter::Namespaces() const {
  std::vector<std::string> names;
  for (const auto& [path, object] : objects) {
    if (IsIn(path, "/api/v1/namespaces")) names.push_back(path.substr(kNamespacePath.size()));
  }
  return names;
}

void KubernetesImposter::CutWatches() {
  ++cuts_;
  changed_.NotifyAll();
}

void KubernetesImposter::DropVersions(bool as_event) {
  ++version_;
  oldest_ = version_;
  sends_error_event_ = as_event;
}

void KubernetesImposter::RestoreAt(std::int64_t version) {
  version_ = version;
  oldest_ = 0;
  changes_.clear();
  CutWatches();
}

void KubernetesImposter::Note(std::string type, const std::string& path, json::object object) {
  changes_.push_back({version_, std::move(type), path, std::move(object)});
  changed_.NotifyAll();
}

void KubernetesImposter::Put(const std::string& path, json::object object) {
  bool is_new = !objects.contains(path);
  json::object& metadata = Metadata(object);
  metadata["name"] = path.substr(path.rfind('/') + 1);
  if (std::string name_space = NamespaceIn(path); !name_space.empty()) metadata["namespace"] = name_space;
  if (!metadata.contains("uid")) metadata["uid"] = fmt::format("uid-{}", ++last_uid_);
  metadata["resourceVersion"] = std::to_string(++version_);
  objects[path] = object;
  if (is_new) made_at_[path] = loop_.SteadyNow();
  Note(is_new ? "ADDED" : "MODIFIED", path, std::move(object));
}

void KubernetesImposter::Remove(const std::string& path) {
  auto found = objects.find(path);
  if (found == objects.end()) return;
  json::object object = std::move(found->second);
  objects.erase(found);
  Metadata(object)["resourceVersion"] = std::to_string(++version_);
  Note("DELETED", path, std::move(object));
}

void KubernetesImposter::SetPodStatus(const std::string& name_space, const std::string& pod,
                                      json::object status) {
  std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, pod);
  json::object object = objects.at(path);
  object["status"] = std::move(status);
  Put(path, std::move(object));
}

Task<HttpReply> KubernetesImposter::Answer(net::HttpCall call) {
  Call seen{call.method, call.url.substr(kServer.size()), {}, ""};
  if (!call.body.empty()) seen.body = json::parse(call.body).as_object();
  for (const auto& [name, value] : call.headers) {
    if (name == "Authorization") seen.authorization = value;
  }
  calls_.push_back(seen);
  if (is_silent) {
    co_await loop_.SleepFor(call.timeouts.answer);
    throw net::HttpError(Verdict::kRetry, "there was no answer", true);
  }
  if (!token.empty() && seen.authorization != "Bearer " + token) {
    co_return Refusal(401, "Unauthorized", "Unauthorized");
  }
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (seen.method != fault->method || !PathOf(seen.path).ends_with(fault->path)) continue;
    Fault now = *fault;
    if (--fault->times <= 0) faults_.erase(fault);
    if (now.has_effect) Dispatch(seen);
    if (now.status == 0) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    HttpReply reply = Refusal(now.status, now.reason, now.message);
    if (now.retry_after > 0) reply.headers = {{"retry-after", std::to_string(now.retry_after)}};
    co_return reply;
  }
  if (is_denied && is_denied(seen)) co_return Refusal(403, "Forbidden", "forbidden: " + seen.path);
  if (seen.path.find("watch=true") != std::string::npos)
    co_return co_await Watch(seen, call.sink, call.timeouts.stall);
  co_return Dispatch(seen);
}

HttpReply KubernetesImposter::Dispatch(const Call& call) {
  if (call.method == "GET") return Get(call);
  if (call.method == "POST") return Post(call);
  if (call.method == "PATCH") return Patch(call);
  return Delete(call);
}

HttpReply KubernetesImposter::Get(const Call& call) {
  std::string path = Stored(PathOf(call.path));
  if (path == "/apis/user.openshift.io/v1/users/~")
    return JsonReply(200, {{"metadata", json::object{{"name", kDefaultUser}}}});
  if (path.ends_with("/configmaps/kube-root-ca.crt"))
    return JsonReply(200, {{"data", json::object{{"ca.crt", "root authority"}}}});
  if (path.ends_with("/events")) {
    json::array items;
    for (const std::string& message : events) items.push_back(json::object{{"message", message}});
    return JsonReply(200, {{"items", std::move(items)}});
  }
  for (const char* collection : {"/namespaces", "/pods", "/nodes", "/resourcequotas"}) {
    if (path.ends_with(collection)) return List(path, call.path);
  }
  auto found = objects.find(path);
  if (found == objects.end()) return Refusal(404, "NotFound", path + " not found");
  json::object object = found->second;
  bool is_filled = fills_secrets && loop_.SteadyNow() >= made_at_[path] + token_takes;
  if (path.find("/secrets/") != std::string::npos && is_filled)
    object["data"] = json::object{{"token", Base64("token of " + NamespaceIn(path))}, {"ca.crt", "QVVUSA=="}};
  return JsonReply(200, std::move(object));
}

HttpReply KubernetesImposter::List(const std::string& collection, const std::string& query) {
  std::string selector = Parameter(query, "labelSelector");
  std::string after = Parameter(query, "continue");  // the path of the last object of the page before
  if (!after.empty() && pages_that_expire-- > 0)
    return Refusal(410, "Expired", "the continue token is too old");
  json::object metadata = {{"resourceVersion", std::to_string(version_)}};
  json::array items;
  std::string last;
  for (auto found = objects.upper_bound(after); found != objects.end(); ++found) {
    const auto& [path, object] = *found;
    if (!IsIn(path, collection) || !Matches(object, selector)) continue;
    if (items.size() == page_size) {
      metadata["continue"] = last;
      break;
    }
    items.push_back(object);
    last = path;
  }
  return JsonReply(200, {{"metadata", std::move(metadata)}, {"items", std::move(items)}});
}

HttpReply KubernetesImposter::Post(const Call& call) {
  if (call.path.ends_with("/projectrequests")) return RequestProject(call);
  if (call.path.ends_with("/token")) {
    auto wanted = std::chrono::seconds(call.body.at("spec").at("expirationSeconds").as_int64());
    WallTime end = loop_.Now() + std::min<Duration>(wanted, longest_token);
    json::object status = {{"token", fmt::format("requested token {}", ++requested_tokens_)},
                           {"expirationTimestamp", Iso8601(end)}};
    return JsonReply(201, {{"status", std::move(status)}});
  }
  std::string name_space = NamespaceIn(call.path + "/x");
  if (!name_space.empty() && call.path != "/api/v1/namespaces") {
    auto found = objects.find(std::string(kNamespacePath) + name_space);
    if (found == objects.end()) return Refusal(404, "NotFound", "no namespace " + name_space);
    if (Metadata(found->second).contains("deletionTimestamp")) {
      json::object cause = {{"reason", "NamespaceTerminating"}};
      return Refusal(403, "Forbidden", "the namespace is being terminated", json::array{std::move(cause)});
    }
  }
  json::object object = call.body;
  std::string path = call.path + "/" + TextIn(Metadata(object), "name");
  if (objects.contains(path)) return Refusal(409, "AlreadyExists", path + " already exists");
  Put(path, object);
  if (call.path.ends_with("/pods")) StartPod(path);
  return JsonReply(201, objects.at(path));
}

HttpReply KubernetesImposter::RequestProject(const Call& call) {
  json::object body = call.body;
  std::string path = std::string(kNamespacePath) + TextIn(Metadata(body), "name");
  if (objects.contains(path)) return Refusal(409, "AlreadyExists", path + " already exists");
  json::object annotations = {{"openshift.io/requester", kDefaultUser}};
  Put(path, {{"metadata", json::object{{"annotations", std::move(annotations)}}}});
  return JsonReply(201, objects.at(path));
}

HttpReply KubernetesImposter::Patch(const Call& call) {
  auto found = objects.find(call.path);
  if (found == objects.end()) return Refusal(404, "NotFound", call.path);
  json::object object = found->second;
  Metadata(object)["labels"] = call.body.at("metadata").at("labels");
  Put(call.path, std::move(object));
  return JsonReply(200, objects.at(call.path));
}

void KubernetesImposter::StartPod(const std::string& path) {
  json::object pod = objects.at(path);
  pod["status"] = json::object{{"phase", "Pending"}};
  Put(path, std::move(pod));
  if (pod_becomes.empty()) return;
  Later(pod_starts, [this, path] {
    if (!objects.contains(path)) return;
    json::object pod = objects.at(path);
    pod["spec"].as_object()["nodeName"] = "node-1";
    pod["status"] = json::object{{"phase", pod_becomes}};
    Put(path, std::move(pod));
  });
}

HttpReply KubernetesImposter::Delete(const Call& call) {
  std::string path = Stored(PathOf(call.path));
  auto found = objects.find(path);
  if (found == objects.end()) return Refusal(404, "NotFound", path + " not found");
  if (!IsIn(path, "/api/v1/namespaces")) {
    json::object object = found->second;
    Metadata(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z";
    Put(path, std::move(object));
    if (!Metadata(found->second).contains("finalizers"))
      Later(std::chrono::seconds(1), [this, path] { Remove(path); });
    return JsonReply(200, {});
  }
  json::object object = found->second;
  if (Metadata(object).contains("deletionTimestamp")) return Refusal(409, "Conflict", "is being deleted");
  Metadata(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  json::object condition = {{"type", "NamespaceFinalizersRemaining"},
                            {"status", "True"},
                            {"message", "finalizer example.com/held in 1 resource"}};
  json::array conditions;
  if (held_namespaces.contains(path.substr(kNamespacePath.size())))
    conditions.push_back(std::move(condition));
  object["status"] = json::object{{"phase", "Terminating"}, {"conditions", std::move(conditions)}};
  Put(path, std::move(object));
  EndNamespace(path);
  return JsonReply(200, objects.at(path));
}

void KubernetesImposter::EndNamespace(const std::string& path) {
  Later(namespace_ends, [this, path] {
    if (held_namespaces.contains(path.substr(kNamespacePath.size()))) return EndNamespace(path);
    std::vector<std::string> inside;
    for (const auto& [other, object] : objects) {
      if (other.starts_with(path + "/")) inside.push_back(other);
    }
    for (const std::string& other : inside) Remove(other);
    Remove(path);
  });
}

Task<HttpReply> KubernetesImposter::Watch(const Call& call, const net::HttpSink& sink, Duration stall) {
  std::string collection = Stored(PathOf(call.path));
  std::string selector = Parameter(call.path, "labelSelector");
  std::int64_t from = std::stoll(Parameter(call.path, "resourceVersion"));
  SteadyTime end =
      loop_.SteadyNow() + std::chrono::seconds(std::stoi(Parameter(call.path, "timeoutSeconds")));
  if (from < oldest_ && !sends_error_event_) co_return Refusal(410, "Expired", "too old resource version");
  HttpReply reply;
  reply.status = 200;
  if (from < oldest_) {
    sink("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}}\n");
    co_return reply;
  }
  int cuts = cuts_;
  std::size_t next = 0;
  SteadyTime sent = loop_.SteadyNow();
  while (loop_.SteadyNow() < end) {
    for (; next < changes_.size(); ++next) {
      const Change& change = changes_[next];
      if (change.version <= from || !IsIn(change.path, collection) || !Matches(change.object, selector))
        continue;
      SendEvent(sink, change.type, change.object);
      sent = loop_.SteadyNow();
    }
    if (loop_.SteadyNow() - sent >= kBookmarkInterval && version_ >= from) {
      SendEvent(sink, "BOOKMARK",
                {{"metadata", json::object{{"resourceVersion", std::to_string(version_)}}}});
      sent = loop_.SteadyNow();
    }
    bool is_behind = version_ < from;
    SteadyTime until = std::min(end, sent + (is_behind ? stall : kBookmarkInterval));
    co_await EndsBy(loop_, until, "a change", changed_.Wait());
    if (cuts_ != cuts) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    if (loop_.SteadyNow() - sent >= stall)
      throw net::HttpError(Verdict::kRetry, "the answer stopped half way", true);
  }
  co_return reply;
}

Task<HttpReply> KubernetesImposterClient::Send(net::HttpCall call) {
  co_await loop_.SleepFor(std::chrono::milliseconds(5));
  HttpReply reply = co_await imposter_.Answer(std::move(call));
  co_return reply;
}

}  // namespace nodepool::testing
