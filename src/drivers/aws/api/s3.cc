#include "drivers/aws/api/s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "async/task.h"
#include "base/crypto.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/aws/api/service_calls.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;
using api::PercentEncoded;

namespace {

// Of a completion that S3 answers with 200 and then fails.
constexpr int kCompletions = 5;
constexpr Duration kCompletionPause = std::chrono::seconds(2);
constexpr Duration kCallLimit = std::chrono::minutes(30);
constexpr const char* kNamespace = "http://s3.amazonaws.com/doc/2006-03-01/";

std::string TagHeader(const S3::Tags& tags) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : tags) texts.push_back(PercentEncoded(key) + "=" + PercentEncoded(value));
  return Join(texts, "&");
}

std::string CompletionText(const std::vector<S3Part>& parts) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  root.append_attribute("xmlns") = kNamespace;
  for (const S3Part& part : parts) {
    pugi::xml_node item = root.append_child("Part");
    item.append_child("PartNumber").text() = part.number;
    item.append_child("ETag").text() = part.etag.c_str();
  }
  std::ostringstream text;
  document.save(text, "", pugi::format_raw);
  return text.str();
}

S3Object ReadObject(const pugi::xml_node& item) {
  return {TextAt(item, {"Key"}), TextAt(item, {"ETag"}), item.child("Size").text().as_ullong()};
}

S3Upload ReadS3Upload(const pugi::xml_node& item) {
  return {TextAt(item, {"Key"}), TextAt(item, {"UploadId"}), TextAt(item, {"Initiated"})};
}

std::string AfterObjects(const pugi::xml_node& root) {
  return "&continuation-token=" + PercentEncoded(TextAt(root, {"NextContinuationToken"}));
}

std::string AfterUploads(const pugi::xml_node& root) {
  return fmt::format("&key-marker={}&upload-id-marker={}", PercentEncoded(TextAt(root, {"NextKeyMarker"})),
                     PercentEncoded(TextAt(root, {"NextUploadIdMarker"})));
}

}  // namespace

std::string BucketUrl(const Account& account, const std::string& bucket) {
  // A name with dots matches no certificate as part of a host.
  if (account.puts_bucket_in_path || bucket.find('.') != std::string::npos) {
    return account.s3_url + "/" + PercentEncoded(bucket);
  }
  std::size_t host = account.s3_url.find("://") + 3;
  return account.s3_url.substr(0, host) + bucket + "." + account.s3_url.substr(host);
}

std::string KeyPath(std::string_view key) {
  std::vector<std::string> segments;
  for (const std::string& segment : Split(key, '/')) segments.push_back(PercentEncoded(segment));
  return "/" + Join(segments, "/");
}

S3::S3(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
       RequestSigner& signer, log::Logger logger, api::CallMetrics metrics, std::string bucket)
    : loop_(loop),
      account_(account),
      bucket_(std::move(bucket)),
      client_(loop, pool, random, http, signer, std::move(logger),
              ClientOptions(account, &ReadFault, std::move(metrics), kDataRepeats)) {}

std::string S3::Describe(const char* name) const { return fmt::format("{} of bucket {}", name, bucket_); }

pugi::xml_document S3::Parse(const char* name, const net::HttpReply& reply) const {
  return ParseXml(reply.body, Describe(name), RequestIdOf(reply));
}

api::ApiRequest S3::Request(const char* name, const char* method, const std::string& resource,
                            Content content) const {
  api::ApiRequest request;
  request.service = kS3.name;
  request.name = name;
  request.text = Describe(name);
  request.call.method = method;
  request.call.url = BucketUrl(account_, bucket_) + resource;
  request.call.headers.emplace_back(kContentDigest, content.sha256);
  request.call.body = std::move(content.bytes);
  request.call.tls = account_.tls;
  request.call.timeouts.total = kCallLimit;
  request.call.follows_redirects = false;
  request.retries = std::numeric_limits<int>::max();
  // A second upload that a lost answer leaves is aborted with all others of its key.
  request.may_be_sent_again = true;
  return request;
}

Task<net::HttpReply> S3::Send(api::ApiRequest request) {
  std::string text = request.text;
  net::HttpReply reply = co_await client_.Call(std::move(request));
  if (reply.status < 300) co_return reply;
  std::string region = Excerpt(reply.Header("x-amz-bucket-region"), 50);
  throw Error(
      Verdict::kInvalid,
      fmt::format("{}: the bucket is in {}; AWS imports images only from buckets in the same region, {}",
                  text, region.empty() ? "another region" : "region " + region, account_.region));
}

Task<net::HttpReply> S3::Send(const char* name, const char* method, std::string resource) {
  return Send(Request(name, method, resource, MakeContent("")));
}

Task<> S3::PutObject(std::string key, Tags tags, Content content) {
  api::ApiRequest request = Request("PutObject", "PUT", KeyPath(key), std::move(content));
  request.call.headers.emplace_back("x-amz-tagging", TagHeader(tags));
  co_await Send(std::move(request));
}

Task<> S3::Delete(const char* name, std::string resource) {
  co_await Send(name, "DELETE", std::move(resource));
}

Task<> S3::DeleteObject(std::string key) { return Delete("DeleteObject", KeyPath(key)); }

template <class T>
Task<api::Page<T>> S3::ReadPage(const char* name, std::string resource, const char* element,
                                std::function<T(const pugi::xml_node& item)> read,
                                std::string (*next)(const pugi::xml_node& root)) {
  net::HttpReply reply = co_await Send(name, "GET", std::move(resource));
  pugi::xml_document document = Parse(name, reply);
  pugi::xml_node root = document.document_element();
  api::Page<T> page;
  page.bytes = reply.body.size();
  for (const pugi::xml_node& item : root.children(element)) page.items.push_back(read(item));
  if (TextAt(root, {"IsTruncated"}) == "true") page.next = next(root);
  co_return page;
}

Task<std::vector<S3Object>> S3::ListObjects(std::string prefix) {
  auto read = [this, prefix](std::string next) {
    std::string resource = "/?list-type=2&prefix=" + PercentEncoded(prefix) + next;
    return ReadPage<S3Object>("ListObjectsV2", std::move(resource), "Contents", &ReadObject, &AfterObjects);
  };
  std::vector<S3Object> objects = co_await api::ReadPages<S3Object>("objects", std::move(read));
  co_return objects;
}

Task<S3::Tags> S3::TagsOf(std::string key) {
  net::HttpReply reply = co_await Send("GetObjectTagging", "GET", KeyPath(key) + "?tagging");
  pugi::xml_document document = Parse("GetObjectTagging", reply);
  Tags tags;
  for (const pugi::xml_node& tag : document.document_element().child("TagSet").children("Tag")) {
    tags[TextAt(tag, {"Key"})] = TextAt(tag, {"Value"});
  }
  co_return tags;
}

Task<std::string> S3::BeginUpload(std::string key, Tags tags) {
  api::ApiRequest request =
      Request("CreateMultipartUpload", "POST", KeyPath(key) + "?uploads", MakeContent(""));
  request.call.headers.emplace_back("x-amz-tagging", TagHeader(tags));
  net::HttpReply reply = co_await Send(std::move(request));
  pugi::xml_document document = Parse("CreateMultipartUpload", reply);
  std::string id = TextAt(document.document_element(), {"UploadId"});
  if (id.empty()) throw Error(Verdict::kRetry, "S3 began an upload in parts and returned no id");
  co_return id;
}

Task<S3Part> S3::PutPart(std::string key, std::string upload_id, int number, Content content) {
  std::string resource =
      fmt::format("{}?partNumber={}&uploadId={}", KeyPath(key), number, PercentEncoded(upload_id));
  net::HttpReply reply = co_await Send(Request("UploadPart", "PUT", resource, std::move(content)));
  S3Part part{number, reply.Header("etag")};
  co_return part;
}

// An answer with status 200 may still be a refusal, and a repeated completion finds no upload any more.
Task<> S3::CompleteUpload(std::string key, std::string upload_id, std::vector<S3Part> parts) {
  std::string resource = fmt::format("{}?uploadId={}", KeyPath(key), PercentEncoded(upload_id));
  Content content = MakeContent(CompletionText(parts));
  for (int tries = 1;; ++tries) {
    Task<net::HttpReply> call = Send(Request("CompleteMultipartUpload", "POST", resource, content));
    Outcome<net::HttpReply> reply = co_await Attempt(std::move(call));
    if (FailedWith(reply, Verdict::kNotFound)) {
      std::vector<S3Object> objects = co_await ListObjects(key);
      bool is_made = std::ranges::any_of(objects, [&key](const S3Object& one) { return one.key == key; });
      if (is_made) co_return;
    }
    if (!reply) reply.error().Rethrow();
    pugi::xml_document document = Parse("CompleteMultipartUpload", *reply);
    if (std::string_view(document.document_element().name()) != "Error") co_return;
    api::Fault fault = ReadFault(400, reply->body);  // only its code counts
    bool may_repeat = fault.verdict == Verdict::kRetry || fault.verdict == Verdict::kRateLimited;
    if (!may_repeat || tries == kCompletions) {
      throw api::MakeApiError(Describe("CompleteMultipartUpload"), 200, std::move(fault));
    }
    co_await loop_.SleepFor(kCompletionPause);
  }
}

Task<> S3::AbortUpload(std::string key, std::string upload_id) {
  std::string resource = fmt::format("{}?uploadId={}", KeyPath(key), PercentEncoded(upload_id));
  return driver::cloud::EnsureGone(Delete("AbortMultipartUpload", std::move(resource)));
}

Task<std::vector<S3Upload>> S3::ListUploads(std::string prefix) {
  auto read = [this, prefix](std::string next) {
    std::string resource = "/?uploads&prefix=" + PercentEncoded(prefix) + next;
    return ReadPage<S3Upload>("ListMultipartUploads", std::move(resource), "Upload", &ReadS3Upload,
                              &AfterUploads);
  };
  std::vector<S3Upload> uploads = co_await api::ReadPages<S3Upload>("uploads in parts", std::move(read));
  // Not every service that resembles S3 knows the parameter.
  std::erase_if(uploads, [&prefix](const S3Upload& upload) { return !upload.key.starts_with(prefix); });
  co_return uploads;
}

}  // namespace nodepool::drivers::aws
