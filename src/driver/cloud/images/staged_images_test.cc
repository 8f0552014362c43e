#include "driver/cloud/images/staged_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "async/task.h"
#include "async/testing/virtual_time.h"
#include "base/testing/test_environment.h"
#include "driver/cloud/metadata.h"

namespace nodepool::driver::cloud {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Metadata = std::map<std::string, std::string>;
using Progress = UploadedImage::Progress;

class MarkedUploadTest : public ::testing::Test {
 protected:
  Task<std::string> Upload() {
    upload.announce = [this](std::string id) { return Note("announced " + std::move(id)); };
    auto make = [this] { return Make(); };
    auto remove = [this] { return Remove(); };
    return UploadMarked(time.loop(), log::Logger("test"), upload, marks, make, remove);
  }
  Task<> Note(std::string what) {
    done.push_back(std::move(what));
    co_return;
  }
  Task<std::string> Make() {
    done.push_back("made");
    if (fails) throw Error(Verdict::kFail, "no");
    co_return "image-1";
  }
  Task<> Remove() {
    done.push_back("removed");
    if (hangs) co_await time.loop().SleepFor(std::chrono::hours(1));
    if (hangs) done.push_back("too late");
  }

  testing::VirtualTime time;
  ImageUploadParameters upload;
  UploadMarks marks{"cloud", "1", "2", "attempt", "debian-1-2.raw"};
  bool fails = false;
  bool hangs = false;
  std::vector<std::string> done;
};

TEST_F(MarkedUploadTest, ItIsAnnouncedFirst) {
  EXPECT_EQ(time.Run(Upload()), "image-1");
  EXPECT_THAT(done, ElementsAre("announced " + UnfinishedId(marks), "made"));
}

TEST_F(MarkedUploadTest, WhatAFailureLeavesIsRemoved) {
  fails = true;
  EXPECT_THROW(time.Run(Upload()), Error);
  EXPECT_EQ(done.back(), "removed");
}

TEST_F(MarkedUploadTest, ARemovalThatHangsIsGivenUpAndLogged) {
  fails = hangs = true;
  log::Capture log;
  EXPECT_THROW(time.Run(Upload()), Error);
  EXPECT_EQ(done.back(), "removed");
  EXPECT_EQ(log.Count("Something of the failed upload of debian-1-2.raw is left"), 1);
}

// A cloud in memory; images are known by their names.
class FakeImages : public StagedImages {
 public:
  FakeImages(AdapterEnvironment environment, std::shared_ptr<const ProviderConfig> config)
      : StagedImages(std::move(environment), std::move(config), log::Logger("test"), {"raw", "disk"}) {}

  std::map<std::string, StagedFile> files;
  std::map<std::string, UploadedImage> images;
  Progress becomes = Progress::kReady;  // at the second reading
  bool makes_image = true;
  bool loses_answer = false;
  bool fails_to_remove = false;
  std::string operation_fault;

 private:
  void Check(const ImageUploadParameters& upload) const override {
    if (upload.name.empty()) throw Error(Verdict::kInvalid, "no name");
  }
  bool HasFiles() const override { return true; }
  Task<> Put(std::shared_ptr<const SparseFile> file, std::string key, Metadata metadata,
             std::function<void(std::uint64_t)> sent) override {
    sent(file->size() / 2);
    sent(file->size() * 2);  // with what the format adds
    files[key] = {key, std::move(metadata), environment().loop.Now()};
    co_return;
  }
  Task<std::vector<StagedFile>> ListFiles(std::string prefix) override {
    std::vector<StagedFile> found;
    for (const auto& [key, file] : files) {
      if (key.starts_with(prefix)) found.push_back(file);
    }
    co_return found;
  }
  Task<> RemoveFile(std::string key) override {
    if (fails_to_remove) throw Error(Verdict::kFail, "no");
    files.erase(key);
    co_return;
  }
  Task<Begun> Import(const ImageUploadParameters& upload, const UploadMarks&) override {
    if (images.contains(upload.name)) throw Error(Verdict::kConflict, "it exists");
    if (makes_image) images[upload.name] = {upload.name, upload.name, TextMetadata(upload), "made"};
    if (loses_answer) throw Error(Verdict::kConflict, "it exists");
    co_return Begun{upload.name, "operation"};
  }
  std::string NamesakeOf(const ImageUploadParameters& upload, const Failure& refusal) const override {
    return refusal.verdict() == Verdict::kConflict ? upload.name : "";
  }
  Task<> CheckOperation(Begun) override {
    if (!operation_fault.empty()) throw Error(Verdict::kFail, operation_fault);
    co_return;
  }
  Task<std::optional<UploadedImage>> Find(std::string id) override {
    auto found = images.find(id);
    if (found == images.end()) co_return std::nullopt;
    UploadedImage image = found->second;
    found->second.progress = becomes;
    co_return image;
  }
  Task<std::vector<UploadedImage>> ListUploaded(std::string attempt) override {
    std::vector<UploadedImage> all;
    for (const auto& [id, image] : images) {
      if (attempt.empty() || OwnerOf(image.metadata).attempt == attempt) all.push_back(image);
    }
    co_return all;
  }
  Task<> Remove(std::string id) override {
    images.erase(id);
    co_return;
  }
};

class StagedImagesTest : public ::testing::Test {
 protected:
  StagedImagesTest() {
    auto image = std::make_shared<ProviderDiskImage>();
    image->name = ImageName("debian");
    config->name = ProviderName("cloud");
    config->diskimages[image->name] = image;
    upload.image = image;
    upload.name = "debian-1";
    upload.filename = folder + "/file";
    std::ofstream(upload.filename) << std::string(200, 'x');
    upload.metadata = {
        {kProviderKey, "cloud"}, {kBuildKey, "b"}, {kUploadKey, "0000000001"}, {kAttemptKey, "0123456789ab"}};
    upload.report = [this](const UploadProgress& progress) {
      reports.push_back(progress.step + " " + std::to_string(progress.percent));
    };
    upload.announce = [this](std::string id) { return Announce(std::move(id)); };
  }
  Task<> Announce(std::string id) {
    announced = std::move(id);
    co_return;
  }
  Outcome<std::string> Upload() { return time.Run(Attempt(images.Upload(upload)), std::chrono::hours(10)); }
  std::string UploadFails() {
    Outcome<std::string> uploaded = Upload();
    return uploaded ? "it succeeded" : uploaded.error().message();
  }
  void Delete(std::string id) { time.Run(images.Delete(std::move(id))); }
  std::vector<Resource> Marked() {
    std::vector<Resource> resources;
    time.Run(images.AppendMarked(resources));
    return resources;
  }

  testing::VirtualTime time;
  testing::TemporaryFolder temporary;
  std::string folder = temporary.path();
  SeededRandom random{1};
  BlockingPool pool{0};
  Framework framework;
  std::shared_ptr<ProviderConfig> config = std::make_shared<ProviderConfig>();
  FakeImages images{AdapterEnvironment{{time.loop(), random, pool}, framework}, config};
  ImageUploadParameters upload;
  std::string announced;
  std::vector<std::string> reports;
};

TEST_F(StagedImagesTest, AnEmptyFileIsRefused) {
  std::ofstream(upload.filename, std::ios::trunc);
  Outcome<std::string> uploaded = Upload();
  ASSERT_FALSE(uploaded);
  EXPECT_EQ(uploaded.error().message(), upload.filename + " is empty");
}

TEST_F(StagedImagesTest, AFileBecomesAnImage) {
  EXPECT_EQ(Upload().value(), "debian-1");
  EXPECT_THAT(reports, ElementsAre("sending the file 50", "sending the file 100", "importing the file 0"));
  EXPECT_TRUE(images.images.contains("debian-1"));
  EXPECT_THAT(images.files, IsEmpty());
  std::vector<ListedImage> listed = time.Run(images.List());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed.front().id, "debian-1");
}

TEST_F(StagedImagesTest, WhatAFailureLeavesIsRemoved) {
  images.becomes = Progress::kFailed;
  EXPECT_EQ(UploadFails(), "image debian-1 is made");
  EXPECT_THAT(images.images, IsEmpty());
  EXPECT_THAT(images.files, IsEmpty());
  images.operation_fault = "the operation failed";
  EXPECT_EQ(UploadFails(), "the operation failed");
  EXPECT_THAT(images.images, IsEmpty());
}

TEST_F(StagedImagesTest, AnImportThatNeverEnds) {
  images.becomes = Progress::kPending;
  EXPECT_THAT(UploadFails(), HasSubstr("the import of image debian-1 timed out"));
  images.makes_image = false;
  EXPECT_EQ(UploadFails(), "image debian-1 has vanished");
  upload.name = "";
  EXPECT_EQ(UploadFails(), "no name");
}

TEST_F(StagedImagesTest, AnImageWhoseAnswerWasLostIsOurs) {
  images.loses_answer = true;
  EXPECT_EQ(Upload().value(), "debian-1");
  images.images["debian-1"].metadata[kAttemptKey] = "another";
  EXPECT_EQ(UploadFails(), "it exists");
  EXPECT_TRUE(images.images.contains("debian-1")) << "it is another upload's";
}

TEST_F(StagedImagesTest, AFileThatStaysIsNoFailure) {
  images.fails_to_remove = true;
  log::Capture log;
  EXPECT_EQ(Upload().value(), "debian-1");
  EXPECT_EQ(log.Count("is left and will be found as leaked: no"), 1);
  EXPECT_EQ(log.Count("Disk debian-0000000001-0123456789ab.raw"), 1);
  EXPECT_THAT(Marked(), ::testing::SizeIs(1)) << "a file that is new may be in use";
  time.Advance(std::chrono::hours(25));
  std::vector<Resource> marked = Marked();
  ASSERT_EQ(marked.size(), 2u);
  EXPECT_EQ(marked[1].type, "disk");
  images.fails_to_remove = false;
  time.Run(images.DeleteMarked(marked[1]));
  EXPECT_THAT(images.files, IsEmpty());
}

TEST_F(StagedImagesTest, AnotherProcessRemovesAnUnfinishedUpload) {
  EXPECT_EQ(Upload().value(), "debian-1");
  Delete(announced);
  EXPECT_THAT(images.images, IsEmpty());
}

TEST_F(StagedImagesTest, OnlyWhatIsOursIsDeleted) {
  EXPECT_EQ(Upload().value(), "debian-1");
  images.images["debian-1"].metadata[kProviderKey] = "another";
  log::Capture log;
  Delete("debian-1");
  EXPECT_EQ(log.Count("Image debian-1 is not of provider cloud and stays"), 1);
  std::vector<Resource> marked = Marked();
  images.images["debian-1"].metadata[kProviderKey] = "cloud";
  time.Run(images.DeleteMarked(marked.front()));
  EXPECT_TRUE(images.images.contains("debian-1")) << "its metadata have changed";
  Delete("debian-1");
  Delete("debian-1");
  EXPECT_THAT(images.images, IsEmpty());
}

}  // namespace

}  // namespace nodepool::driver::cloud
