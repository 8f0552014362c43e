#include "drivers/gce/api/storage.h"

#include <fmt/format.h>

#include <charconv>

#include "async/task.h"
#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;
using api::PercentEncoded;
using driver::cloud::StagedFile;

namespace {

constexpr int kStorageRepeats = 5;
constexpr int kCancelled = 499;  // the answer to the end of an upload
constexpr int kResumeIncomplete = 308;

StagedFile ReadStored(const json::object& entry) {
  return {TextIn(entry, "name"), TextsIn(ObjectIn(entry, "metadata")),
          ParseIso8601(TextIn(entry, "timeCreated"))};
}

}  // namespace

Storage::Storage(const driver::cloud::AdapterEnvironment& environment, net::HttpClient& http,
                 const Endpoints& endpoints, const GceConfig& config, api::Signer& signer, log::Logger logger)
    : endpoints_(endpoints),
      bucket_(config.bucket.value_or("")),
      client_(environment.loop, environment.blocking_pool, environment.random, http, signer, logger,
              ClientOptions(kStorageRepeats, {environment.observer, config.name, "gce"})),
      parts_(environment.loop, environment.blocking_pool, environment.random, http, signer, logger,
             ClientOptions(0, {environment.observer, config.name, "gce"})) {}

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
  json::object body{{"name", name}, {"metadata", ObjectOf(metadata)}};
  api::SetBody(body, request.call);
  request.call.headers.emplace_back("X-Upload-Content-Type", "application/gzip");
  net::HttpReply reply = co_await client_.Call(std::move(request));
  std::string id = api::ParameterOf(reply.Header("location"), "upload_id");
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

Task<Storage::UploadState> Storage::PutPart(std::string upload, std::uint64_t place, std::string bytes,
                                            std::optional<std::uint64_t> total) {
  api::ApiRequest request = UploadRequest("PUT", upload);
  std::string range = bytes.empty() ? "*" : fmt::format("{}-{}", place, place + bytes.size() - 1);
  std::string size = total ? std::to_string(*total) : "*";
  request.call.headers = {{"Content-Range", fmt::format("bytes {}/{}", range, size)}};
  request.call.body = std::move(bytes);
  net::HttpReply reply = co_await parts_.Call(std::move(request));
  co_return ReadState(reply);
}

Task<Storage::UploadState> Storage::AskState(std::string upload) {
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
Storage::UploadState Storage::ReadState(const net::HttpReply& reply) {
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
  json::value answer = ParsedJson(std::string_view(reply.body).substr(0, 64 * 1024));
  if (!answer.is_object())
    throw Error(Verdict::kRetry, "objects.insert was answered with something that is no JSON");
  state.is_complete = true;
  state.md5 = TextIn(answer.get_object(), "md5Hash");
  return state;
}

Task<std::vector<StagedFile>> Storage::List(std::string prefix) {
  api::ApiRequest request = RequestFor("GET", "objects.list", "/storage/v1");
  request.call.url += "?prefix=" + PercentEncoded(prefix);
  return api::CallForList<StagedFile>(client_, std::move(request), kLists, &ReadStored);
}

Task<> Storage::Delete(std::string name) {
  api::ApiRequest request = RequestFor("DELETE", "objects.delete", "/storage/v1");
  request.call.url += "/" + PercentEncoded(name);
  co_await api::WasThere(client_.Call(std::move(request)));
}

}  // namespace nodepool::drivers::gce
