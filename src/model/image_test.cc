#include "model/image.h"

#include <gtest/gtest.h>

namespace nodepool {

namespace {

const WallTime kImageNow = FromSeconds(1'800'000'000.25);

constexpr std::string_view kBuild =
    R"({"state": "ready", "state_time": 1726600000.5, "builder": "nb01.example.org", )"
    R"("builder_id": "7b0a3f0e-2f6c-4a55-9d0f-0c1d2e3f4a5b", "formats": "qcow2,raw", )"
    R"("username": "zuul", "python_path": "auto", "shell_type": null})";

constexpr std::string_view kUpload =
    R"({"state": "ready", "state_time": 1726600300.25, "external_id": "img-9f", )"
    R"("external_name": "deb12-1726600200", "format": "qcow2", "username": "zuul", "python_path": "auto", )"
    R"("shell_type": null})";

TEST(ImageBuild, ReadsAndWritesWhatPythonWrites) {
  Expected<ImageBuild> build = ParseImageBuild(kBuild, kImageNow);
  ASSERT_TRUE(build) << build.error().message();
  EXPECT_EQ(build->state, ImageState::kReady);
  EXPECT_EQ(build->formats, (std::vector<std::string>{"qcow2", "raw"}));
  EXPECT_EQ(ToJson(*build), kBuild);
}

// coordination.md 4.5: three keys are omitted, not null, when unset; formats are sorted.
TEST(ImageBuild, UnsetKeysAreOmitted) {
  Expected<ImageBuild> build = ParseImageBuild(R"({"state": "failed", "state_time": 5.5})", kImageNow);
  ASSERT_TRUE(build);
  EXPECT_EQ(build->username, "zuul");
  EXPECT_EQ(build->python_path, "/usr/bin/python2");
  EXPECT_EQ(
      ToJson(*build),
      R"({"state": "failed", "state_time": 5.5, "username": "zuul", "python_path": "/usr/bin/python2", )"
      R"("shell_type": null})");
  build->formats = {"vhd", "qcow2"};
  EXPECT_NE(ToJson(*build).find(R"("formats": "qcow2,vhd")"), std::string::npos);
}

TEST(ImageUpload, ReadsAndWritesWhatPythonWrites) {
  Expected<ImageUpload> upload = ParseImageUpload(kUpload, kImageNow);
  ASSERT_TRUE(upload) << upload.error().message();
  EXPECT_EQ(upload->external_id, "img-9f");
  EXPECT_EQ(ToJson(*upload), kUpload);
}

TEST(ImageUpload, ProgressIsWrittenOnlyWhileThereIsOne) {
  Expected<ImageUpload> upload =
      ParseImageUpload(R"({"state": "uploading", "progress": "sending the file, 40 %"})", kImageNow);
  ASSERT_TRUE(upload);
  EXPECT_EQ(upload->progress, "sending the file, 40 %");
  EXPECT_NE(ToJson(*upload).find(R"("progress": "sending the file, 40 %")"), std::string::npos);
  upload->progress.reset();
  EXPECT_EQ(ToJson(*upload).find("progress"), std::string::npos);
}

TEST(ImageBuild, WhyItFailedIsInItsRecord) {
  Expected<ImageBuild> build =
      ParseImageBuild(R"({"state": "failed", "error": "dib ended with 1: no space left"})", kImageNow);
  ASSERT_TRUE(build);
  EXPECT_EQ(build->error, "dib ended with 1: no space left");
  EXPECT_NE(ToJson(*build).find(R"("error": "dib ended with 1: no space left")"), std::string::npos);
}

// D-04
TEST(ImageUpload, UnknownKeysAreRetained) {
  Expected<ImageUpload> upload = ParseImageUpload(R"({"state": "deleting", "extra": {"a": 1}})", kImageNow);
  ASSERT_TRUE(upload);
  EXPECT_EQ(upload->state_time, kImageNow);
  EXPECT_NE(ToJson(*upload).find(R"("extra": {"a": 1})"), std::string::npos);
}

// coordination.md 5.3 and 5.4: each kind has its own states.
TEST(ImageState, IsCheckedByKindOfRecord) {
  EXPECT_FALSE(ParseImageBuild(R"({"state": "uploading"})", kImageNow));
  EXPECT_FALSE(ParseImageUpload(R"({"state": "building"})", kImageNow));
  EXPECT_FALSE(ParseImageUpload(R"({"state": null})", kImageNow));
  EXPECT_TRUE(ParseImageBuild(R"({"state": "building"})", kImageNow));
  EXPECT_TRUE(ParseImageUpload(R"({"state": "uploading"})", kImageNow));
}

}  // namespace

}  // namespace nodepool
