#include "drivers/gce/api/storage.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/time_text.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;
using api::PercentEncoded;

namespace {

constexpr int kStorageRepeats = 5;
constexpr int kCancelled = 499;  // the answer to the end of an upload
constexpr int kResumeIncomplete = 308;

StoredObject ReadStored(const json::object& entry) {
  StoredObject object;
  object.name = TextIn(entry, "name");
  object.created = ParseIso8601(TextIn(entry, "timeCreated"));
  if (const json::object* metadata = ObjectIn(entry, "metadata")) {
    for (const auto& [key, value] : *metadata) object.metadata[key] = TextIn(*metadata, key);
  }
  return object;
}

// What follows `name=` in a URL's query.
std::string ParameterIn(const std::string& url, std::string_view name) {
  for (const std::string& item : Split(api::QueryOf(url), '&')) {
    if (item.starts_with(name) && item.size() > name.size() && item[name.size()] == '=')
      return item.substr(name.size() + 1);
  }
  return "";
}

}  // namespace

Storage::Storage(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http,
                 const Endpoints& endpoints, std::string bucket, api::Signer& signer, log::Logger logger,
                 ClientSettings settings)
    : endpoints_(endpoints),
      bucket_(std::move(bucket)),
      client_(loop, pool, random, http, signer, logger, ClientOptions(settings, kStorageRepeats)),
      parts_(loop, pool, random, http, signer, logger, ClientOptions(settings, 0)) {}

api::ApiRequest Storage::RequestFor(std::string method, std::string action, std::string path) const {
  api::ApiRequest request;
  request.service = "storage";
  request.name = action;
  request.text = fmt::format("{} of bucket {}", action, bucket_);
  request.may_be_sent_again = true;
  request.call.method = std::move(method);
  request.call.url = fmt::format("{}{}/b/{}/o", endpoints_.storage, path, PercentEncoded(bucket_));
  request.call.follows_redirects = false;
  return request;
}

Task<std::string> Storage::BeginUpload(std::string name, std::map<std::string, std::string> metadata) {
  api::ApiRequest request = RequestFor("POST", "objects.insert", "/upload/storage/v1");
  request.call.url += "?uploadType=resumable";
  request.call.headers = {{"Content-Type", "application/json"},
                          {"X-Upload-Content-Type", "application/gzip"}};
  json::object own;
  for (const auto& [key, value] : metadata) own[key] = value;
  json::object body{{"name", name}, {"metadata", std::move(own)}};
  request.call.body = json::serialize(body);
  net::HttpReply reply = co_await client_.Call(std::move(request));
  std::string id = ParameterIn(reply.Header("location"), "upload_id");
  if (id.empty()) throw Error(Verdict::kRetry, "objects.insert was answered without the id of an upload");
  co_return id;
}

// To the service's own address, wherever its answer pointed.
api::ApiRequest Storage::UploadRequest(std::string method, const std::string& upload) const {
  api::ApiRequest request = RequestFor(std::move(method), "objects.insert.part", "/upload/storage/v1");
  request.call.url += "?uploadType=resumable&upload_id=" + upload;
  request.retries = 0;
  return request;
}

Task<UploadState> Storage::PutPart(std::string upload, std::uint64_t place, std::string bytes,
                                   std::optional<std::uint64_t> total) {
  api::ApiRequest request = UploadRequest("PUT", upload);
  std::string range = bytes.empty() ? "*" : fmt::format("{}-{}", place, place + bytes.size() - 1);
  std::string size = total ? std::to_string(*total) : "*";
  request.call.headers = {{"Content-Range", fmt::format("bytes {}/{}", range, size)}};
  request.call.body = std::move(bytes);
  net::HttpReply reply = co_await parts_.Call(std::move(request));
  co_return ReadState(reply);
}

Task<UploadState> Storage::AskState(std::string upload) {
  api::ApiRequest request = UploadRequest("PUT", upload);
  request.call.headers = {{"Content-Range", "bytes */*"}};
  net::HttpReply reply = co_await client_.Call(std::move(request));
  co_return ReadState(reply);
}

Task<> Storage::CancelUpload(std::string upload) {
  Outcome<net::HttpReply> reply = co_await Attempt(client_.Call(UploadRequest("DELETE", upload)));
  bool is_gone = reply || FailedWith(reply, Verdict::kNotFound) || api::StatusOf(reply) == kCancelled ||
                 api::StatusOf(reply) == 410;
  if (!is_gone) reply.error().Rethrow();
}

// "bytes=0-524287", or nothing of it has arrived.
UploadState Storage::ReadState(const net::HttpReply& reply) {
  UploadState state;
  if (reply.status == kResumeIncomplete) {
    const std::string& range = reply.Header("range");
    std::size_t dash = range.rfind('-');
    if (dash == std::string::npos) return state;
    std::uint64_t last = 0;
    auto [end, error] = std::from_chars(range.data() + dash + 1, range.data() + range.size(), last);
    if (error == std::errc()) state.received = last + 1;
    return state;
  }
  boost::system::error_code error;
  json::value answer = json::parse(reply.body.substr(0, 64 * 1024), error);
  if (error || !answer.is_object())
    throw Error(Verdict::kRetry, "objects.insert was answered with something that is no JSON");
  state.is_complete = true;
  state.md5 = TextIn(answer.get_object(), "md5Hash");
  return state;
}

Task<std::vector<StoredObject>> Storage::List(std::string prefix) {
  auto read = [this, prefix = std::move(prefix)](std::string next) {
    return ReadPage(prefix, std::move(next));
  };
  return api::ReadPages<StoredObject>("objects.list", std::move(read));
}

Task<api::Page<StoredObject>> Storage::ReadPage(std::string prefix, std::string next) {
  api::ApiRequest request = RequestFor("GET", "objects.list", "/storage/v1");
  request.call.url += "?prefix=" + PercentEncoded(prefix);
  if (!next.empty()) request.call.url += "&pageToken=" + PercentEncoded(next);
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return PageOf<StoredObject>(reply, "objects.list", &ReadStored);
}

Task<> Storage::Delete(std::string name) {
  api::ApiRequest request = RequestFor("DELETE", "objects.delete", "/storage/v1");
  request.call.url += "/" + PercentEncoded(name);
  co_await api::WasThere(client_.Call(std::move(request)));
}

}  // namespace nodepool::drivers::gce
