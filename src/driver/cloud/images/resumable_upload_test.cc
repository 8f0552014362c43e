#include "driver/cloud/images/resumable_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "async/task.h"
#include "async/testing/virtual_time.h"
#include "base/crypto.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 20 MiB of letters, of which each call reads some.
class Letters : public ByteSource {
 public:
  static constexpr std::size_t kSize = 20 << 20;

  std::string Read(std::size_t size) override {
    std::size_t length = std::min({size, kSize - place_, std::size_t{3} << 20});
    std::string bytes;
    while (bytes.size() < length) {
      std::size_t alike = std::min(length - bytes.size(), kAlike - place_ % kAlike);
      bytes.append(alike, static_cast<char>('a' + place_ / kAlike % 23));
      place_ += alike;
    }
    return bytes;
  }
  bool is_at_end() const override { return place_ == kSize; }
  std::uint64_t place() const override { return place_; }

 private:
  static constexpr std::size_t kAlike = 1000;

  std::size_t place_ = 0;
};

// A service in memory.
class Uploads : public ResumableUploads {
 public:
  enum class Fault {
    kNone,
    kLosesAnswer,  // after it has kept the bytes
    kBusy,
    kKeepsHalf,
    kLosesUpload,
    kKnowsNoUpload,
    kForgets,  // what it had
    kRefuses,
  };

  std::map<std::string, std::string> uploads;  // what has arrived, by id
  std::map<std::string, std::string> metadata;
  std::deque<Fault> faults;  // of the next parts
  std::string md5;           // that it says; empty: of what it has
  int parts = 0;
  int questions = 0;

  Task<std::string> BeginUpload(std::string name, std::map<std::string, std::string> with) override {
    metadata = std::move(with);
    std::string id = name + "-" + std::to_string(++begun_);
    uploads[id];
    co_return id;
  }
  Task<UploadState> PutPart(std::string upload, std::uint64_t place, std::string bytes,
                            std::optional<std::uint64_t> total) override {
    ++parts;
    Fault fault = Fault::kNone;
    if (!faults.empty()) {
      fault = faults.front();
      faults.pop_front();
    }
    if (fault == Fault::kBusy) throw Error(Verdict::kRetry, "busy");
    if (fault == Fault::kRefuses) throw Error(Verdict::kInvalid, "no");
    if (fault == Fault::kLosesUpload) throw api::ApiError(Verdict::kNotFound, "gone", 410);
    if (fault == Fault::kKnowsNoUpload) throw api::ApiError(Verdict::kNotFound, "unknown", 404);
    std::string& content = uploads.at(upload);
    EXPECT_EQ(place, content.size());
    if (fault == Fault::kKeepsHalf) bytes.resize(bytes.size() / 2);
    if (fault == Fault::kForgets) content.clear();
    if (fault != Fault::kForgets) content += bytes;
    is_complete_ = total == content.size();
    if (fault == Fault::kLosesAnswer) throw Error(Verdict::kRetry, "no answer");
    co_return StateOf(upload);
  }
  Task<UploadState> AskState(std::string upload) override {
    ++questions;
    co_return StateOf(upload);
  }
  Task<> CancelUpload(std::string upload) override {
    uploads.erase(upload);
    co_return;
  }

 private:
  UploadState StateOf(const std::string& upload) {
    const std::string& content = uploads.at(upload);
    if (!is_complete_) return {false, content.size(), ""};
    Digest digest("md5");
    digest.Add(content);
    return {true, 0, md5.empty() ? Base64(digest.Bytes()) : md5};
  }

  int begun_ = 0;
  bool is_complete_ = false;
};

constexpr std::uint64_t kPart = 8 << 20;

class ResumableUploadTest : public ::testing::Test {
 protected:
  using Fault = Uploads::Fault;

  Outcome<> Put() {
    ResumableObject object{"Storage", "object", {{"a", "b"}}, [] { return std::make_shared<Letters>(); }};
    auto sent = [this](std::uint64_t place) { places.push_back(place); };
    return time.Run(Attempt(PutResumable({time.loop(), random, pool}, log::Logger("test"), service,
                                         std::move(object), sent)),
                    std::chrono::hours(10));
  }
  // Which upload has the whole content.
  std::string Complete() const {
    Letters letters;
    std::string all;
    while (!letters.is_at_end()) all += letters.Read(Letters::kSize);
    for (const auto& [id, content] : service.uploads) {
      if (content == all) return id;
    }
    return "none";
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  BlockingPool pool{0};
  Uploads service;
  std::vector<std::uint64_t> places;
};

TEST_F(ResumableUploadTest, AnObjectIsPutInParts) {
  EXPECT_TRUE(Put());
  EXPECT_EQ(Complete(), "object-1");
  EXPECT_EQ(service.parts, 3);
  EXPECT_EQ(service.metadata.at("a"), "b");
  EXPECT_THAT(places, ::testing::ElementsAre(kPart, 2 * kPart));
}

TEST_F(ResumableUploadTest, ItGoesOnWhereTheServiceIs) {
  service.faults = {Fault::kBusy, Fault::kKeepsHalf, Fault::kLosesAnswer, Fault::kBusy};
  EXPECT_TRUE(Put());
  EXPECT_EQ(Complete(), "object-1");
  EXPECT_EQ(service.questions, 3) << "after each fault, since what has arrived is not known";
}

TEST_F(ResumableUploadTest, ALostAnswerToTheLastPartIsASuccess) {
  service.faults = {Fault::kNone, Fault::kNone, Fault::kLosesAnswer};
  EXPECT_TRUE(Put());
  EXPECT_EQ(Complete(), "object-1");
}

TEST_F(ResumableUploadTest, ALostUploadBeginsAgain) {
  log::Capture log;
  service.faults = {Fault::kNone, Fault::kLosesUpload, Fault::kNone, Fault::kForgets};
  EXPECT_TRUE(Put());
  EXPECT_EQ(Complete(), "object-3");
  EXPECT_EQ(log.Count("Storage has lost the upload of object, which begins again"), 2);
  service.faults = {Fault::kKnowsNoUpload, Fault::kLosesUpload, Fault::kKnowsNoUpload};
  EXPECT_THAT(Put().error().message(), HasSubstr("Storage lost the upload of object 3 times"));
}

TEST_F(ResumableUploadTest, FaultsThatDoNotPassAreFinal) {
  service.faults = std::deque<Fault>(100, Fault::kBusy);
  EXPECT_EQ(Put().error().message(), "busy");
  EXPECT_THAT(service.uploads, IsEmpty()) << "what has failed is cancelled";
  service.faults = {Fault::kRefuses};
  EXPECT_EQ(Put().error().message(), "no");
  EXPECT_TRUE(service.faults.empty());
  EXPECT_THAT(service.uploads, IsEmpty());
}

TEST_F(ResumableUploadTest, AnObjectThatIsNotWhatWasSentIsAFailure) {
  service.md5 = "odd";
  EXPECT_THAT(Put().error().message(), HasSubstr("object object has the MD5 odd, and "));
  EXPECT_THAT(service.uploads, IsEmpty());
}

}  // namespace
}  // namespace nodepool::driver::cloud
