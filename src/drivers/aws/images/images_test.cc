#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/testing/virtual_time.h"
#include "base/crypto.h"
#include "base/text.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/images/image_import.h"

namespace nodepool::drivers::aws {

// What uploads are made of: files, marks, parts, calls.

namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// --- Files ------------------------------------------------------------------------

class ImageFileTest : public ::testing::Test {
 protected:
  ImageFileTest() : path_(::testing::TempDir() + "image-" + std::to_string(getpid())) {}
  ~ImageFileTest() override { std::filesystem::remove(path_); }

  void Write(std::uint64_t place, const std::string& bytes) {
    std::ofstream(path_, std::ios::app).close();
    std::ofstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(place));
    file << bytes;
  }

  std::string path_;
};

constexpr int kBlock = 512 << 10;

// AWS-61
TEST_F(ImageFileTest, OnlyBlocksWithDataAreFound) {
  Write(10, "x");
  Write(2 * kBlock, std::string(kBlock, '\0'));
  Write(4 * kBlock + 7, "end");
  SparseFile file(path_);
  EXPECT_EQ(file.size(), 4u * kBlock + 10);
  std::optional<Block> block = FindBlock(file, 0, file.size(), kBlock);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->index, 0);
  block = FindBlock(file, kBlock, file.size(), kBlock);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->index, 4);
  EXPECT_THAT(block->content.bytes, SizeIs(kBlock));
  EXPECT_EQ(block->content.bytes.substr(0, 11), std::string("\0\0\0\0\0\0\0end\0", 11));
  EXPECT_EQ(block->content.sha256, Sha256Hex(block->content.bytes));
  EXPECT_FALSE(FindBlock(file, kBlock, 4 * kBlock, kBlock));
}

TEST_F(ImageFileTest, WhatCannotBeReadIsNamed) {
  auto message = [this] {
    try {
      SparseFile file(path_);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(message(), AllOf(HasSubstr(path_), HasSubstr("No such file")));
  Write(0, "abcdef");
  SparseFile file(path_);
  EXPECT_EQ(file.Read(2, 100), "cdef");
  std::filesystem::resize_file(path_, 3);
  EXPECT_THROW(file.Read(0, 6), Error);
}

// AWS-66
TEST(PartPlanTest, ThereAreAtMostTenThousandPartsAndFewInMemory) {
  EXPECT_EQ(PlanParts(1).count, 1);
  EXPECT_EQ(PlanParts(8 << 20).count, 1);
  PartPlan plan = PlanParts(100 << 20);
  EXPECT_EQ(plan.size, 8u << 20);
  EXPECT_EQ(plan.count, 13);
  EXPECT_EQ(plan.at_a_time, 4);
  for (std::uint64_t gibibytes : {70, 79, 500, 5000}) {
    plan = PlanParts(gibibytes << 30);
    EXPECT_LE(plan.count, 10'000) << gibibytes;
    EXPECT_LE(plan.size * static_cast<std::uint64_t>(plan.at_a_time),
              std::max<std::uint64_t>(32 << 20, plan.size));
  }
}

// --- Marks ------------------------------------------------------------------------

driver::ImageUploadParameters Upload() {
  driver::ImageUploadParameters upload;
  auto image = std::make_shared<AwsDiskImage>();
  image->name = ImageName("debian");
  upload.image = image;
  upload.name = "debian-1700000000";
  upload.format = "raw";
  upload.metadata = {{"nodepool_provider_name", "ec2"},
                     {"nodepool_build_id", "b1"},
                     {"nodepool_upload_id", "0000000001"},
                     {"nodepool_attempt", "0123456789abcdef"},
                     {"flag", true},
                     {"none", nullptr},
                     {"number", 7}};
  return upload;
}

// AWS-84
TEST(UploadMarksTest, AnUnfinishedUploadIsFoundByItsId) {
  UploadMarks marks = MarksOf(Upload(), "raw");
  EXPECT_EQ(UnfinishedId(marks),
            "unfinished:b1:0000000001:0123456789abcdef:debian-0000000001-0123456789ab.raw");
  std::optional<UploadMarks> read = ReadUnfinishedId(UnfinishedId(marks), "ec2");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->build, "b1");
  EXPECT_EQ(read->key, "debian-0000000001-0123456789ab.raw");
  EXPECT_TRUE(read->AreOn(TagsOf(Upload())));
  EXPECT_EQ(read->Token("import"), marks.Token("import"));
  EXPECT_NE(marks.Token("import"), marks.Token("snapshot"));
  EXPECT_TRUE(marks.AreOn(TagsOf(Upload())));
  std::map<std::string, std::string> others = TagsOf(Upload());
  others["nodepool_build_id"] = "b2";
  EXPECT_FALSE(marks.AreOn(others)) << "an equal upload id of another build";
  driver::ImageUploadParameters copied = Upload();
  copied.metadata["nodepool_attempt"] = "another";
  EXPECT_FALSE(marks.AreOn(TagsOf(copied))) << "the same numbers in a copy of the tree";
  EXPECT_NE(MarksOf(copied, "raw").key, marks.key);
  EXPECT_NE(MarksOf(copied, "raw").Token("import"), marks.Token("import"));
  for (const char* id : {"ami-1", "unfinished:", "unfinished:b", "unfinished:b:1", "unfinished:b:1:k",
                         "unfinished:b:1:a:", "unfinished::1:a:k", "unfinished:b:1::k"}) {
    EXPECT_FALSE(ReadUnfinishedId(id, "ec2")) << id;
  }
  driver::ImageUploadParameters nobodys = Upload();
  nobodys.metadata.erase("nodepool_upload_id");
  EXPECT_THROW(MarksOf(nobodys, "raw"), Error);
}

// AWS-59
TEST(UploadMarksTest, TagsAreTextAndFitWhereTheyAreWritten) {
  driver::ImageUploadParameters upload = Upload();
  upload.metadata["long"] = std::string(300, 'x');
  std::map<std::string, std::string> tags = TagsOf(upload);
  EXPECT_EQ(tags["flag"], "True");
  EXPECT_EQ(tags["none"], "None");
  EXPECT_EQ(tags["number"], "7");
  EXPECT_THAT(tags["long"], SizeIs(256));
  EXPECT_EQ(ObjectTags(tags), tags);
  auto own = ElementsAre(Pair("nodepool_attempt", "0123456789abcdef"), Pair("nodepool_build_id", "b1"),
                         Pair("nodepool_provider_name", "ec2"), Pair("nodepool_upload_id", "0000000001"));
  tags["odd"] = "{a,b}";
  EXPECT_THAT(ObjectTags(tags), own) << "characters that S3 refuses";
  tags.erase("odd");
  for (int i = 0; i < 5; ++i) tags["more" + std::to_string(i)] = "x";
  EXPECT_THAT(ObjectTags(tags), own) << "more than ten";
}

// AWS-56
TEST(ImageLeaksTest, KeysOfUploads) {
  ImageName image("debian");
  EXPECT_TRUE(IsKeyOf("debian-1700000000.raw", image));
  EXPECT_TRUE(IsKeyOf("debian-0000000001-0123456789ab.raw", image));
  EXPECT_TRUE(IsKeyOf("debian-1700000000.z", image));
  for (const char* key : {"debian-.raw", "debian-1-.raw", "debian-1-xy.raw", "debian-1-a-b.raw",
                          "debian-1700000000", "debian-1700000000.", "debian-17a.raw", "debian-big-17.raw",
                          "ubuntu-17.raw", "debian-17.raw.bak", "debian-17.raw/x"}) {
    EXPECT_FALSE(IsKeyOf(key, image)) << key;
  }
}

// AWS-57
TEST(ImportTasksTest, TasksAreRead) {
  pugi::xml_document document;
  document.load_string(
      "<r><importSnapshotTaskSet><item><importTaskId>import-snap-1</importTaskId><snapshotTaskDetail>"
      "<status>active</status><statusMessage>converting</statusMessage><progress>43</progress></"
      "snapshotTaskDetail>"
      "<tagSet><item><key>a</key><value>b</value></item></tagSet></item></importSnapshotTaskSet>"
      "<importImageTaskSet><item><importTaskId>import-ami-1</importTaskId><status>completed</status>"
      "<imageId>ami-1</imageId><snapshotDetailSet><item><snapshotId>snap-1</snapshotId></item></"
      "snapshotDetailSet>"
      "</item></importImageTaskSet></r>");
  std::vector<ImportTask> tasks = ReadSnapshotTasks(document.document_element());
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_EQ(tasks[0].percent, 43);
  EXPECT_EQ(tasks[0].message, "converting");
  EXPECT_FALSE(tasks[0].has_ended());
  EXPECT_THAT(tasks[0].tags, ElementsAre(Pair("a", "b")));
  tasks = ReadImageTasks(document.document_element());
  ASSERT_THAT(tasks, SizeIs(1));
  EXPECT_TRUE(tasks[0].is_completed() && tasks[0].has_ended());
  EXPECT_EQ(tasks[0].image, "ami-1");
  EXPECT_EQ(tasks[0].snapshot, "snap-1");
}

// --- Workers ------------------------------------------------------------------------

// The second fails soon; the others take an hour.
Task<> WorkAs(Loop& loop, int number, int& ended) {
  co_await loop.SleepFor(number == 2 ? Duration(1s) : Duration(1h));
  if (number == 2) throw Error(Verdict::kFail, "the second failed");
  ++ended;
}

TEST(WorkersTest, TheFirstFailureEndsTheOthers) {
  testing::VirtualTime time;
  int begun = 0;
  int ended = 0;
  std::function<Task<>()> make = [&] { return WorkAs(time.loop(), ++begun, ended); };
  SteadyTime start = time.loop().SteadyNow();
  auto run = [&] { time.Run(RunWorkers(time.loop(), log::Logger("test"), "work", 3, make)); };
  EXPECT_THAT(run, ::testing::Throws<Error>(::testing::Property(&Error::message, "the second failed")));
  EXPECT_EQ(begun, 3);
  EXPECT_EQ(ended, 0);
  EXPECT_LT(time.loop().SteadyNow() - start, 1min);
}

// Calls of S3 and of the EBS direct APIs, answered by functions.

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
