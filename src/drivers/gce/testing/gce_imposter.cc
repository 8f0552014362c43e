#include "drivers/gce/testing/gce_imposter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::testing {

namespace json = boost::json;

namespace {

// What Google refuses.
struct Refused {
  int status;
  std::string reason;
  std::string message;
};

std::string Plain(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

net::HttpReply Json(const json::object& body, int status = 200) {
  return {status, {{"date", "Sat, 28 Nov 2026 00:00:00 GMT"}}, json::serialize(body)};
}

net::HttpReply Refusal(const Refused& refused) {
  json::object entry{{"reason", refused.reason}, {"message", refused.message}};
  json::object error{{"code", refused.status}, {"message", refused.message}, {"errors", json::array{entry}}};
  return Json({{"error", std::move(error)}}, refused.status);
}

std::string LinkTo(const std::string& path) {
  return "https://www.googleapis.com/compute/v1/projects/p/" + path;
}

// What the call is named: by its method and the collection in its path.
std::string ActionOf(const std::string& method, const std::vector<std::string>& path) {
  if (path.empty()) return "projects.get";
  const std::string verb = method == "DELETE" ? "delete" : method == "POST" ? "insert" : "get";
  if (path.back() == "serialPort") return "instances.getSerialPortOutput";
  if (path.size() > 2 && path[path.size() - 2] == "family") return "images.getFromFamily";
  bool is_global = path.front() == "global";
  std::size_t collection = is_global ? 1 : path.size() > 2 ? 2 : 0;
  bool is_list = path.size() == collection + 1 && method == "GET";
  std::string name = path[collection];
  if (name == "operations") name = is_global ? "globalOperations" : "zoneOperations";
  return name + "." + (is_list ? "list" : verb);
}

}  // namespace

int GceImposter::Count(const std::string& action) const {
  return static_cast<int>(std::ranges::count(calls, action, &Call::action));
}

const GceImposter::Call& GceImposter::Last(const std::string& action) const {
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->action == action) return *call;
  }
  throw std::logic_error("there was no call " + action);
}

Task<net::HttpReply> GceImposter::Send(net::HttpCall call) {
  Request request;
  request.method = call.method;
  request.call = &call;
  std::size_t mark = call.url.find('?');
  std::string query = mark == std::string::npos ? "" : call.url.substr(mark + 1);
  std::string path = call.url.substr(0, mark);
  path = path.substr(path.find('/', path.find("//") + 2));
  for (const std::string& item : Split(query, '&')) {
    std::size_t equals = item.find('=');
    request.query[item.substr(0, equals)] = Plain(item.substr(equals + 1));
  }
  if (call.body.starts_with('{')) request.body = json::parse(call.body).as_object();
  std::string action = "token";
  if (path.starts_with("/compute/v1/projects/")) {
    for (const std::string& part : Split(path.substr(21), '/')) request.path.push_back(Plain(part));
    request.path.erase(request.path.begin());
    action = ActionOf(call.method, request.path);
  } else if (path.find("storage/v1/b/") != std::string::npos) {
    std::size_t objects = path.find("/o", path.find("/b/"));
    if (path.size() > objects + 2) request.path.push_back(Plain(path.substr(objects + 3)));
    bool is_part = path.starts_with("/upload") && call.method != "POST";
    action = is_part                 ? "objects.part"
             : call.method == "GET"  ? "objects.list"
             : call.method == "POST" ? "objects.insert"
                                     : "objects.delete";
  }
  calls.push_back({action, call.url, query, request.body, call.headers, loop_.SteadyNow()});
  if (is_silent) co_await loop_.SleepFor(std::chrono::hours(1000));
  co_await loop_.SleepFor(latency);
  auto fault = std::ranges::find_if(
      faults, [&](const Fault& one) { return (one.action == action || one.action == "*") && one.times > 0; });
  std::optional<Fault> met;
  if (fault != faults.end()) met = *fault;
  if (met) --fault->times;
  net::HttpReply reply;
  if (!met || met->is_after) reply = Answer(action, request);
  if (!met) co_return reply;
  if (met->status == 0) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
  if (!met->body.empty()) co_return net::HttpReply{met->status, {}, met->body};
  co_return Refusal({met->status, met->reason, met->message});
}

net::HttpReply GceImposter::Answer(const std::string& action, const Request& request) {
  Settle();
  try {
    if (action == "token")
      return Json({{"access_token", "ya29.secret"}, {"expires_in", token_seconds}, {"token_type", "Bearer"}});
    return action.starts_with("objects.") ? Storage(action, request) : Compute(action, request);
  } catch (const Refused& refused) {
    return Refusal(refused);
  }
}

net::HttpReply GceImposter::Compute(const std::string& action, const Request& request) {
  auto known = repeated_.find(request.query.contains("requestId") ? request.query.at("requestId") : "");
  if (known != repeated_.end()) return Json(operations_.at(known->second));
  if (action == "instances.insert") return Json(Insert(request));
  if (action == "instances.delete") return Json(Delete(request));
  if (action == "instances.list") return Json(List(request));
  if (action == "instances.get") return Json(Shown(Find(request)));
  if (action == "instances.getSerialPortOutput") return Json({{"contents", "login: "}});
  if (action == "zoneOperations.list") return Json({{"items", events}});
  if (action.ends_with("Operations.get")) {
    auto found = operations_.find(request.path.back());
    if (found == operations_.end()) throw Refused{404, "notFound", "no operation"};
    return Json(found->second);
  }
  if (action == "machineTypes.get") {
    auto type = types.find(request.path.back());
    if (type == types.end()) throw Refused{404, "notFound", "no machine type " + request.path.back()};
    return Json({{"guestCpus", type->second}, {"memoryMb", 4096}, {"architecture", "X86_64"}});
  }
  if (action == "images.getFromFamily") {
    auto family = families.find(request.path.back());
    if (family == families.end()) throw Refused{404, "notFound", "no family"};
    return Json({{"selfLink", LinkTo("global/images/" + family->second)}, {"architecture", "X86_64"}});
  }
  if (action == "images.insert") return Json(InsertImage(request));
  if (action == "images.list") {
    json::array items;
    for (const auto& [name, image] : images) items.push_back(image);
    return Json({{"items", std::move(items)}});
  }
  if (action.starts_with("images.")) {
    auto image = images.find(request.path.back());
    if (image == images.end()) throw Refused{404, "notFound", "no image"};
    if (action == "images.get") return Json(image->second);
    images.erase(image);
    return Json(NewOperation("global/images/" + request.path.back()));
  }
  json::array list;
  for (const auto& [metric, amounts] : quotas)
    list.push_back(json::object{{"metric", metric}, {"limit", amounts.first}, {"usage", amounts.second}});
  return Json({{"quotas", std::move(list)}});
}

json::object GceImposter::NewOperation(const std::string& target) {
  std::string name = fmt::format("operation-{}", ++last_number_);
  json::object operation{{"name", name}, {"status", "DONE"}, {"targetLink", LinkTo(target)}};
  operations_[name] = operation;
  return operation;
}

json::object GceImposter::Insert(const Request& request) {
  const std::string& zone = request.path.at(1);
  std::string key = zone + "/" + TextIn(request.body, "name");
  if (instances.contains(key))
    throw Refused{409, "alreadyExists", "The resource '" + key + "' already exists"};
  SteadyTime now = loop_.SteadyNow();
  Instance instance{request.body, std::to_string(++last_number_), zone, now + visible_after, now + starting};
  if (refused_zones.contains(zone)) instance.error = refused_zones.at(zone);
  json::object operation = NewOperation("zones/" + zone + "/instances/" + TextIn(request.body, "name"));
  operation["status"] = "RUNNING";
  operation["targetId"] = instance.number;
  std::string name = TextIn(operation, "name");
  operations_[name] = operation;
  repeated_[request.query.at("requestId")] = name;
  instance.body["operation"] = name;
  instances[key] = std::move(instance);
  return operation;
}

// What time has done since the last call.
void GceImposter::Settle() {
  SteadyTime now = loop_.SteadyNow();
  std::erase_if(instances, [&](const auto& entry) {
    const Instance& instance = entry.second;
    bool has_ended = now >= instance.running && !instance.error.empty();
    if (now >= instance.running && instance.body.contains("operation")) {
      json::object& operation = operations_[TextIn(instance.body, "operation")];
      operation["status"] = "DONE";
      json::object error{{"code", instance.error}, {"message", "Quota 'CPUS' exceeded, or no resources"}};
      if (has_ended) operation["error"] = json::object{{"errors", json::array{std::move(error)}}};
    }
    return has_ended || now >= instance.gone;
  });
}

GceImposter::Instance& GceImposter::Find(const Request& request) {
  const std::string& wanted = request.path.at(3);
  for (auto& [key, instance] : instances) {
    bool is_it = key == request.path.at(1) + "/" + wanted || instance.number == wanted;
    if (is_it && loop_.SteadyNow() >= instance.visible) return instance;
  }
  throw Refused{404, "notFound", "The resource '" + wanted + "' was not found"};
}

json::object GceImposter::Delete(const Request& request) {
  Instance& instance = Find(request);
  instance.gone = std::min(instance.gone, loop_.SteadyNow() + stopping);
  json::object operation = NewOperation("zones/" + instance.zone + "/instances/x");
  repeated_[request.query.at("requestId")] = TextIn(operation, "name");
  return operation;
}

json::object GceImposter::Shown(const Instance& instance) const {
  SteadyTime now = loop_.SteadyNow();
  std::string status = now < instance.running ? "STAGING" : "RUNNING";
  if (instance.gone != SteadyTime::max()) status = "STOPPING";
  if (!instance.status.empty()) status = instance.status;
  json::object shown = instance.body;
  shown.erase("operation");
  shown["id"] = instance.number;
  shown["status"] = status;
  shown["zone"] = LinkTo("zones/" + instance.zone);
  shown["machineType"] = LinkTo(TextIn(instance.body, "machineType"));
  json::object interface {
    { "networkIP", "10.0.0.1" }
  };
  const json::array* interfaces = ArrayIn(instance.body, "networkInterfaces");
  bool has_public = interfaces != nullptr && ArrayIn(interfaces->front(), "accessConfigs") != nullptr;
  bool has_ipv6 = interfaces != nullptr && ArrayIn(interfaces->front(), "ipv6AccessConfigs") != nullptr;
  json::object access{{"type", "ONE_TO_ONE_NAT"}};
  if (status == "RUNNING") access["natIP"] = "192.0.2.1";
  if (has_public) interface["accessConfigs"] = json::array{std::move(access)};
  if (has_ipv6) interface["ipv6AccessConfigs"] = json::array{json::object{{"externalIpv6", "2001:db8::1"}}};
  shown["networkInterfaces"] = json::array{std::move(interface)};
  json::object disk{{"diskSizeGb", "10"}};
  shown["disks"] = json::array{std::move(disk)};
  return shown;
}

json::object GceImposter::List(const Request& request) {
  std::string filter = request.query.contains("filter") ? request.query.at("filter") : "";
  std::string provider = filter.substr(filter.find('=') + 1);
  int begin = request.query.contains("pageToken") ? std::stoi(request.query.at("pageToken")) : 0;
  json::array items;
  int number = 0;
  for (const auto& [key, instance] : instances) {
    const json::object* labels = ObjectIn(instance.body, "labels");
    bool matches =
        filter.empty() || (labels != nullptr && TextIn(*labels, "nodepool_provider_name") == provider);
    if (!matches || instance.zone != request.path.at(1) || loop_.SteadyNow() < instance.visible) continue;
    if (number >= begin && number < begin + page_size) items.push_back(Shown(instance));
    ++number;
  }
  json::object answer;
  if (!items.empty()) answer["items"] = std::move(items);
  if (number > begin + page_size) answer["nextPageToken"] = std::to_string(begin + page_size);
  return answer;
}

json::object GceImposter::InsertImage(const Request& request) {
  std::string name = TextIn(request.body, "name");
  if (images.contains(name)) throw Refused{409, "alreadyExists", name + " already exists"};
  const std::string source = TextIn(*ObjectIn(request.body, "rawDisk"), "source");
  auto object = objects.find(source.substr(source.rfind('/') + 1));
  if (object == objects.end() || !object->second.is_complete)
    throw Refused{400, "invalid", "The referenced resource does not exist: " + source};
  images[name] = request.body;
  images[name]["status"] = "READY";
  return NewOperation("global/images/" + name);
}

net::HttpReply GceImposter::Storage(const std::string& action, const Request& request) {
  if (action == "objects.insert") {
    std::string id = fmt::format("upload-{}", ++last_number_);
    std::string name = TextIn(request.body, "name");
    uploads[id] = name;
    objects[name] = {"", request.body};
    return {200, {{"location", "http://elsewhere/?upload_id=" + id}}, ""};
  }
  if (action == "objects.part") return PutPart(request);
  if (action == "objects.list") {
    json::array items;
    for (const auto& [name, object] : objects) {
      if (object.is_complete && name.starts_with(request.query.at("prefix"))) items.push_back(object.about);
    }
    return Json({{"items", std::move(items)}});
  }
  if (objects.erase(request.path.at(0)) == 0) throw Refused{404, "notFound", "no object"};
  return {204, {}, ""};
}

net::HttpReply GceImposter::PutPart(const Request& request) {
  auto upload = uploads.find(request.query.at("upload_id"));
  if (upload == uploads.end()) throw Refused{410, "uploadBroken", "gone"};
  Object& object = objects[upload->second];
  if (request.method == "DELETE") {
    objects.erase(upload->second);
    uploads.erase(upload);
    return {499, {}, ""};
  }
  std::string range;
  for (const auto& [name, value] : request.call->headers) {
    if (name == "Content-Range") range = value;
  }
  bool has_bytes = range.find('-') != std::string::npos;
  if (has_bytes) object.bytes.resize(std::stoull(range.substr(6)));
  object.bytes += request.call->body;
  bool is_last = !range.ends_with("/*");
  if (is_last) object.is_complete = true;
  if (is_last) return Json({{"name", upload->second}});
  net::HttpReply reply{308, {}, ""};
  if (!object.bytes.empty()) reply.headers = {{"range", fmt::format("bytes=0-{}", object.bytes.size() - 1)}};
  return reply;
}

}  // namespace nodepool::testing
