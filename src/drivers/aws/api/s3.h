#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/json_calls.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

// An object of a bucket, without its content.
struct S3Object {
  std::string key;
  std::string etag;  // changes with the content
  std::uint64_t size = 0;
};

// An upload in parts that is neither completed nor aborted. Its parts cost money, and lists of objects do not
// show it.
struct S3Upload {
  std::string key;
  std::string id;
  std::string initiated;  // 2024-05-06T07:08:09.000Z
};

// A part that S3 has.
struct S3Part {
  int number = 0;  // from 1
  std::string etag;
};

// A bucket (driver-aws.md 5.4). Passing faults are repeated for some minutes: what is sent is one part of
// something large. Errors: those of ApiClient::Call.
class S3 {
 public:
  // Everything outlives it.
  S3(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
     RequestSigner& signer, log::Logger logger, driver::cloud::api::CallMetrics metrics, std::string bucket);

  const std::string& bucket() const { return bucket_; }

  using Tags = std::map<std::string, std::string>;
  Task<> PutObject(std::string key, Tags tags, Content content);
  // An object that does not exist is success.
  Task<> DeleteObject(std::string key);
  Task<std::vector<S3Object>> ListObjects(std::string prefix);
  Task<Tags> TagsOf(std::string key);

  // Begins an upload in parts; returns its id.
  Task<std::string> BeginUpload(std::string key, Tags tags);
  Task<S3Part> PutPart(std::string key, std::string upload_id, int number, Content content);
  // Makes the object of its parts, which are in order.
  Task<> CompleteUpload(std::string key, std::string upload_id, std::vector<S3Part> parts);
  // An upload that does not exist is success.
  Task<> AbortUpload(std::string key, std::string upload_id);
  Task<std::vector<S3Upload>> ListUploads(std::string prefix);

 private:
  // For errors. `name` as S3's documentation calls the operation, here and below.
  std::string Describe(const char* name) const;
  pugi::xml_document Parse(const char* name, const net::HttpReply& reply) const;
  // `resource`: "/key?query", encoded.
  driver::cloud::api::ApiRequest Request(const char* name, const char* method, const std::string& resource,
                                         Content content) const;
  Task<net::HttpReply> Send(driver::cloud::api::ApiRequest request);
  Task<net::HttpReply> Send(const char* name, const char* method, std::string resource);
  Task<> Delete(const char* name, std::string resource);

  // A page of a list: the children of the answer called `element`. `next`: what is added to `resource` for
  // the next page; empty: there is none.
  template <class T>
  Task<driver::cloud::api::Page<T>> ReadPage(const char* name, std::string resource, const char* element,
                                             std::function<T(const pugi::xml_node& item)> read,
                                             std::string (*next)(const pugi::xml_node& root));

  Loop& loop_;
  const Account& account_;
  std::string bucket_;
  driver::cloud::api::ApiClient client_;
};

// The URL of a bucket, without a slash at the end.
std::string BucketUrl(const Account& account, const std::string& bucket);

// "/" and the key as a path.
std::string KeyPath(std::string_view key);

}  // namespace nodepool::drivers::aws
