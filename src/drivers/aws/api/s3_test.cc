// Calls of S3 and of the EBS direct APIs, answered by functions.
#include "drivers/aws/api/s3.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/digest.h"
#include "base/encoding.h"
#include "drivers/aws/api/ebs.h"

namespace nodepool::drivers::aws {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;
using ::testing::SizeIs;
using ::testing::Throws;

class DataServicesTest : public ::testing::Test, private net::HttpClient {
 protected:
  DataServicesTest() {
    account_.region = "us-west-2";
    account_.s3_url = "http://s3.example:9";
    account_.ebs_url = "http://ebs.example";
    account_.puts_bucket_in_path = true;
  }

  Task<net::HttpReply> Send(net::HttpCall call) override {
    calls_.push_back(call);
    co_await time_.loop().SleepFor(10ms);
    if (answers_.empty()) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    net::HttpReply reply = answers_.front();
    answers_.erase(answers_.begin());
    if (reply.status == 0) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    co_return reply;
  }

  Task<Credentials> Fetch() { co_return Credentials{"KEY", "secret", "", WallTime::max()}; }

  void Answer(int status, std::string body = "", net::HttpHeaders headers = {}) {
    answers_.push_back({status, std::move(headers), std::move(body)});
  }
  std::string Header(std::size_t call, std::string_view name) const {
    for (const auto& [key, value] : calls_.at(call).headers) {
      if (key == name) return value;
    }
    return "";
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  BlockingPool pool_{0};
  Account account_;
  ServerClock clock_{time_.loop(), log::Logger("test"), "AWS"};
  RequestSigner::CredentialSource credentials_{time_.loop(), [this] { return Fetch(); }};
  RequestSigner s3_signer_{clock_, credentials_, SigningScope{"us-west-2", "s3"}};
  RequestSigner ebs_signer_{clock_, credentials_, SigningScope{"us-west-2", "ebs"}};
  S3 s3_{time_.loop(), pool_, random_, *this, account_, s3_signer_, log::Logger("test"), {}, "images"};
  Ebs ebs_{time_.loop(), pool_, random_, *this, account_, ebs_signer_, log::Logger("test"), {}};
  std::vector<net::HttpReply> answers_;
  std::vector<net::HttpCall> calls_;
};

std::string S3Error(const std::string& code) {
  return "<Error><Code>" + code + "</Code><Message>so</Message><RequestId>r</RequestId></Error>";
}

// AWS-76
TEST_F(DataServicesTest, WhereBucketsAre) {
  EXPECT_EQ(BucketUrl(account_, "images"), "http://s3.example:9/images");
  account_.puts_bucket_in_path = false;
  EXPECT_EQ(BucketUrl(account_, "images"), "http://images.s3.example:9");
  EXPECT_EQ(BucketUrl(account_, "my.images"), "http://s3.example:9/my.images");
  EXPECT_EQ(KeyPath("a b/c+d-1.raw"), "/a%20b/c%2Bd-1.raw");
}

TEST_F(DataServicesTest, AnObjectIsSentWithItsDigestAndTags) {
  Answer(200);
  time_.Run(s3_.PutObject("debian-1.raw", {{"a b", "c&d"}}, MakeContent("content")));
  EXPECT_EQ(calls_.at(0).method, "PUT");
  EXPECT_EQ(calls_.at(0).url, "http://s3.example:9/images/debian-1.raw");
  EXPECT_EQ(calls_.at(0).body, "content");
  EXPECT_EQ(Header(0, "X-Amz-Content-SHA256"), Sha256Hex("content"));
  EXPECT_EQ(Header(0, "x-amz-tagging"), "a%20b=c%26d");
  EXPECT_THAT(Header(0, "Authorization"), HasSubstr("us-west-2/s3/aws4_request"));
}

// AWS-66
TEST_F(DataServicesTest, FaultsRepeatThePart) {
  Answer(503, S3Error("SlowDown"));
  Answer(500, S3Error("InternalError"));
  Answer(0);
  Answer(200, "", {{"etag", "\"e7\""}});
  S3Part part = time_.Run(s3_.PutPart("k", "u/1", 7, MakeContent("part")));
  EXPECT_EQ(part.number, 7);
  EXPECT_EQ(part.etag, "\"e7\"");
  EXPECT_THAT(calls_, SizeIs(4));
  EXPECT_EQ(calls_.at(3).url, "http://s3.example:9/images/k?partNumber=7&uploadId=u%2F1");
}

TEST_F(DataServicesTest, ACompletionThatFailsWithStatus200IsRepeated) {
  Answer(200, S3Error("InternalError"));
  Answer(200, "<CompleteMultipartUploadResult/>");
  time_.Run(s3_.CompleteUpload("k", "u", {{1, "\"a\""}, {2, "\"b\""}}));
  EXPECT_THAT(calls_.at(1).body,
              HasSubstr("<Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part><Part><PartNumber>2"));
  Answer(200, S3Error("InvalidPart"));
  EXPECT_THAT(
      [&] {
        time_.Run(s3_.CompleteUpload("k", "u", {{1, "a"}}));
      },
      Throws<Error>(Property(&Error::message, HasSubstr("InvalidPart: so"))));
}

TEST_F(DataServicesTest, ACompletionWhoseAnswerWasLostIsFoundByItsObject) {
  Answer(0);
  Answer(404, S3Error("NoSuchUpload"));
  Answer(200, "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>");
  time_.Run(s3_.CompleteUpload("k", "u", {{1, "a"}}));
  Answer(404, S3Error("NoSuchUpload"));
  Answer(200, "<ListBucketResult><Contents><Key>kk</Key></Contents></ListBucketResult>");
  EXPECT_THROW(time_.Run(s3_.CompleteUpload("k", "u", {{1, "a"}})), Error);
}

TEST_F(DataServicesTest, ListsAreReadToTheirEnd) {
  Answer(
      200,
      "<ListBucketResult><Contents><Key>a-1</Key><Size>5</Size><ETag>e</ETag></Contents>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t=1</NextContinuationToken></ListBucketResult>");
  Answer(200,
         "<ListBucketResult><Contents><Key>a-2</Key></Contents><IsTruncated>false</IsTruncated></"
         "ListBucketResult>");
  std::vector<S3Object> objects = time_.Run(s3_.ListObjects("a-"));
  ASSERT_THAT(objects, SizeIs(2));
  EXPECT_EQ(objects[0].size, 5u);
  EXPECT_THAT(calls_.at(1).url, HasSubstr("prefix=a-&continuation-token=t%3D1"));
  Answer(200,
         "<R><Upload><Key>a-1</Key><UploadId>u1</UploadId></Upload><IsTruncated>true</IsTruncated>"
         "<NextKeyMarker>a-1</NextKeyMarker><NextUploadIdMarker>u1</NextUploadIdMarker></R>");
  Answer(200, "<R><Upload><Key>b</Key><UploadId>u2</UploadId></Upload></R>");
  std::vector<S3Upload> uploads = time_.Run(s3_.ListUploads("a-"));
  ASSERT_THAT(uploads, SizeIs(1)) << "what has another prefix is left out";
  EXPECT_EQ(uploads[0].id, "u1");
  EXPECT_THAT(calls_.at(3).url, HasSubstr("&key-marker=a-1&upload-id-marker=u1"));
}

TEST_F(DataServicesTest, WhatIsGoneNeedsNoAbort) {
  Answer(404, S3Error("NoSuchUpload"));
  time_.Run(s3_.AbortUpload("k", "u"));
}

TEST_F(DataServicesTest, ABucketOfAnotherRegionIsNamedAsSuch) {
  Answer(301, S3Error("PermanentRedirect"), {{"x-amz-bucket-region", "eu-west-1"}});
  EXPECT_THAT([&] { time_.Run(s3_.DeleteObject("k")); },
              Throws<Error>(Property(&Error::message, HasSubstr("is in region eu-west-1"))));
}

// AWS-61
TEST_F(DataServicesTest, ABlockIsSentWithItsChecksumWhichIsCompared) {
  Content block = MakeContent(std::string(512, 'x'));
  std::string checksum = Base64(BytesOfHex(block.sha256));
  Answer(201, "", {{"x-amz-checksum", "another"}});
  Answer(400, R"({"Message": "bad", "Reason": "INVALID_CONTENT_CHECKSUM"})",
         {{"x-amzn-errortype", "ValidationException:http://x"}});
  Answer(201, "", {{"x-amz-checksum", checksum}});
  time_.Run(ebs_.PutBlock("snap-1", 7, block));
  EXPECT_THAT(calls_, SizeIs(3));
  EXPECT_EQ(calls_.at(0).url, "http://ebs.example/snapshots/snap-1/blocks/7");
  EXPECT_EQ(Header(0, "x-amz-Checksum"), checksum);
  EXPECT_EQ(Header(0, "x-amz-Data-Length"), "512");
  for (int i = 0; i < 3; ++i) Answer(201, "", {{"x-amz-checksum", "another"}});
  EXPECT_THAT([&] { time_.Run(ebs_.PutBlock("snap-1", 7, block)); },
              Throws<Error>(Property(&Error::message, HasSubstr("did not arrive"))));
}

// AWS-65
TEST_F(DataServicesTest, ASnapshotThatIsNotKnownEverywhereIsWaitedFor) {
  Content block = MakeContent("x");
  Answer(404, R"({"Message": "no such snapshot"})", {{"x-amzn-errortype", "ResourceNotFoundException"}});
  Answer(400, R"({"Message": "slow"})", {{"x-amzn-errortype", "RequestThrottledException"}});
  Answer(201, "", {{"x-amz-checksum", Base64(BytesOfHex(block.sha256))}});
  time_.Run(ebs_.PutBlock("snap-1", 0, block));
  EXPECT_THAT(calls_, SizeIs(3));
}

TEST_F(DataServicesTest, ACompletionCarriesTheChecksumOfAllBlocks) {
  Answer(202, R"({"Status": "pending"})");
  EXPECT_EQ(time_.Run(ebs_.Complete("snap-1", 3, Sha256Hex("digests"))), "pending");
  EXPECT_EQ(Header(0, "x-amz-ChangedBlocksCount"), "3");
  EXPECT_EQ(Header(0, "x-amz-Checksum"), Base64(BytesOfHex(Sha256Hex("digests"))));
  EXPECT_EQ(Header(0, "x-amz-Checksum-Aggregation-Method"), "LINEAR");
}

TEST_F(DataServicesTest, ASnapshotNeedsAnIdAndBlocks) {
  Answer(201, R"({"SnapshotId": "snap-1", "BlockSize": 524288})");
  NewSnapshot snapshot = time_.Run(ebs_.Begin(4, {{"a", "b"}}, "token"));
  EXPECT_EQ(snapshot.id, "snap-1");
  EXPECT_EQ(snapshot.block_size, 524288);
  EXPECT_EQ(calls_.at(0).body, R"({"VolumeSize":4,"ClientToken":"token","Tags":[{"Key":"a","Value":"b"}]})");
  Answer(201, R"({"SnapshotId": "snap-1"})");
  EXPECT_THROW(time_.Run(ebs_.Begin(4, {}, "token")), Error);
}

}  // namespace
}  // namespace nodepool::drivers::aws
