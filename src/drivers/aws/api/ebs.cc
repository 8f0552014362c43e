#include "drivers/aws/api/ebs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <limits>

#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/api/services.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr int kBlockTries = 3;
// A new snapshot is not known everywhere at once.
constexpr int kTriesUntilKnown = 12;
constexpr Duration kBlockPause = std::chrono::seconds(2);

api::ApiClient::Options EbsClientOptions(const Account& account, api::CallMetrics metrics) {
  api::ApiClient::Options options = ClientOptions(account, &ReadJsonFault, std::move(metrics), kDataRepeats);
  options.read_refusal = &ReadEbsFault;
  return options;
}

std::string Checksum(const std::string& sha256) { return Base64(BytesOfHex(sha256)); }

}  // namespace

api::Fault ReadEbsFault(const net::HttpReply& refusal) {
  std::string code = CodeOfType(refusal.Header("x-amzn-errortype"));
  api::Fault fault = ReadJsonFault(refusal.status, refusal.body);
  if (code.empty() || !fault.code.empty()) return fault;
  return FaultOf(refusal.status, std::move(code), api::FaultText(refusal.body));
}

Ebs::Ebs(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
         RequestSigner& signer, log::Logger logger, api::CallMetrics metrics)
    : loop_(loop),
      account_(account),
      client_(loop, pool, random, http, signer, std::move(logger),
              EbsClientOptions(account, std::move(metrics))) {}

api::ApiRequest Ebs::Request(const char* name, const char* method, const std::string& path,
                             Content content) const {
  api::ApiRequest request;
  request.service = kEbs.name;
  request.name = name;
  request.text = fmt::format("{} at {}", name, net::UrlForLog(account_.ebs_url));
  request.call.method = method;
  request.call.url = account_.ebs_url + path;
  request.call.headers.emplace_back(kContentDigest, content.sha256);
  request.call.body = std::move(content.bytes);
  request.call.tls = account_.tls;
  request.retries = std::numeric_limits<int>::max();
  request.may_be_sent_again = true;
  return request;
}

Task<NewSnapshot> Ebs::Begin(int size, std::map<std::string, std::string> tags, std::string token) {
  json::array list;
  for (const auto& [key, value] : tags) list.push_back(json::object{{"Key", key}, {"Value", value}});
  json::object body{{"VolumeSize", size}, {"ClientToken", token}, {"Tags", std::move(list)}};
  api::ApiRequest request =
      Request("StartSnapshot", "POST", "/snapshots", MakeContent(json::serialize(body)));
  request.call.headers.emplace_back("Content-Type", "application/json");
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  NewSnapshot snapshot;
  if (reply.body.is_object()) {
    snapshot.id = TextIn(reply.body.get_object(), "SnapshotId");
    snapshot.block_size = static_cast<int>(NumberIn(reply.body.get_object(), "BlockSize"));
  }
  if (snapshot.id.empty() || snapshot.block_size <= 0 || snapshot.block_size > (16 << 20)) {
    throw Error(Verdict::kRetry, "AWS began a snapshot and returned no usable id and size of blocks");
  }
  co_return snapshot;
}

// Returns the checksum of what AWS received.
Task<std::string> Ebs::PutOnce(std::string snapshot, int index, const Content& content) {
  std::size_t length = content.bytes.size();
  std::string checksum = Checksum(content.sha256);
  api::ApiRequest request =
      Request("PutSnapshotBlock", "PUT", fmt::format("/snapshots/{}/blocks/{}", snapshot, index), content);
  request.call.headers.emplace_back("Content-Type", "application/octet-stream");
  request.call.headers.emplace_back("x-amz-Data-Length", std::to_string(length));
  request.call.headers.emplace_back("x-amz-Checksum", checksum);
  request.call.headers.emplace_back("x-amz-Checksum-Algorithm", "SHA256");
  net::HttpReply reply = co_await client_.Call(std::move(request));
  co_return reply.Header("x-amz-checksum");
}

Task<> Ebs::PutBlock(std::string snapshot, int index, Content content) {
  for (int tries = 1;; ++tries) {
    Outcome<std::string> received = co_await Attempt(PutOnce(snapshot, index, content));
    if (received && *received == Checksum(content.sha256)) co_return;
    if (received && tries >= kBlockTries) {
      throw Error(Verdict::kRetry, fmt::format("block {} of snapshot {} did not arrive as it was sent: its "
                                               "checksum is {}",
                                               index, snapshot, Excerpt(*received)));
    }
    if (!received) {
      std::string code = CodeOf(received.error());
      bool is_unknown = code == "ResourceNotFoundException" && tries < kTriesUntilKnown;
      bool may_pass = code == "ValidationException" && tries < kBlockTries;
      if (!is_unknown && !may_pass) received.error().Rethrow();
    }
    co_await loop_.SleepFor(kBlockPause);
  }
}

Task<std::string> Ebs::Complete(std::string snapshot, int written_blocks, std::string sha256) {
  api::ApiRequest request =
      Request("CompleteSnapshot", "POST", "/snapshots/completion/" + snapshot, MakeContent(""));
  net::HttpHeaders& headers = request.call.headers;
  headers.emplace_back("x-amz-ChangedBlocksCount", std::to_string(written_blocks));
  if (!sha256.empty()) {
    headers.emplace_back("x-amz-Checksum", Checksum(sha256));
    headers.emplace_back("x-amz-Checksum-Algorithm", "SHA256");
    headers.emplace_back("x-amz-Checksum-Aggregation-Method", "LINEAR");
  }
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return reply.body.is_object() ? TextIn(reply.body.get_object(), "Status") : std::string();
}

}  // namespace nodepool::drivers::aws
