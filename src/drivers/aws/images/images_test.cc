// What uploads are made of: files, marks, parts, calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/testing/virtual_time.h"
#include "base/digest.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/images/own_images.h"
#include "drivers/aws/images/send_file.h"

namespace nodepool::drivers::aws {
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

}  // namespace
}  // namespace nodepool::drivers::aws
