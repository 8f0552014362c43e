#include "model/validation.h"

#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// An upload of the image `debian` that is being validated, and a pool whose label `small` boots the image.
class ValidationNodesTest : public CloudTest {
 protected:
  void StartCloud() {
    top_ = "diskimages: [{name: debian, validate: true}]";
    AddCloud({.provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
    upload_ = AddUpload("debian");
    SetUploadState(ImageState::kUploading);
    StartLauncher();
  }
  void SetUploadState(ImageState state) {
    ImageUpload upload = *ParseImageUpload(time_.Run(client_->Get(upload_))->data, time_.loop().Now());
    upload.state = state;
    time_.Run(client_->Set(upload_, ToJson(upload)));
  }
  RequestId RequestValidation() {
    std::string build = upload_.substr(upload_.find("builds/") + 7, 32);
    NodeRequest request = ValidationRequest(kLabel, ProviderName("cloud"),
                                            {BuildId(build), UploadId("0000000001")}, time_.loop().Now());
    return time_.Run(client_store_->requests.Create("200", std::move(request), false));
  }
  std::size_t NodeCount() { return time_.Run(client_store_->nodes.List()).size(); }

  const LabelName kLabel = ValidationLabel(LabelName("small"));
  std::string upload_;
};

// VAL-10
TEST_F(ValidationNodesTest, AnUploadThatNobodyMayUseYetIsBootedForItsBuilder) {
  StartCloud();
  RequestId others = Request({"small"});
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kFulfilled));
  Node node = NodeOf(own);
  EXPECT_EQ(node.image_id.value_or(""), upload_);
  EXPECT_EQ(node.type, std::vector<LabelName>{kLabel});
  EXPECT_TRUE(AwaitState(others, RequestState::kFailed)) << "there is no ready upload";
  std::vector<store::LockedNode> taken = Take(own);
  Return(taken);
  EXPECT_TRUE(Await([&] { return NodeCount() == 0; }));
  EXPECT_TRUE(cloud().servers().empty());
}

// VAL-11
TEST_F(ValidationNodesTest, ItsNodeIsNotForOthers) {
  StartCloud();
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kFulfilled));
  SetUploadState(ImageState::kReady);
  DeleteRequest(own);
  RequestId others = Request({"small"});
  ASSERT_TRUE(AwaitState(others, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(others).type, std::vector<LabelName>{LabelName("small")});
  EXPECT_EQ(cloud().created_count(), 2u);
  EXPECT_TRUE(Await([&] { return NodeCount() == 1; }, minutes(10))) << "the other one is deleted";
}

// VAL-11
TEST_F(ValidationNodesTest, WhatIsReadyWhenTheRequestVanishesIsDeleted) {
  StartCloud();
  Change([](drivers::FakeSimulation& settings) { settings.create_latency = seconds(30); });
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kPending));
  DeleteRequest(own);
  EXPECT_TRUE(Await([&] { return NodeCount() == 0; }, minutes(10)));
  EXPECT_TRUE(cloud().servers().empty());
}

// VAL-12
TEST_F(ValidationNodesTest, WhatDoesNotBootOpensNoBreaker) {
  StartCloud();
  Change([](drivers::FakeSimulation& settings) { settings.create_failure_rate = 1; });
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(AwaitState(RequestValidation(), RequestState::kFailed, minutes(20)));
  EXPECT_FALSE(time_.Run(client_->Exists("/nodepool/breakers/cloud:main:" + kLabel.value)));
  EXPECT_GE(cloud().create_attempts(), 15u);
}

// VAL-13
TEST_F(ValidationNodesTest, WithoutTheSettingNobodyBootsIt) {
  AddCloud({.provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  top_ = "diskimages: [{name: debian}]";
  upload_ = AddUpload("debian");
  SetUploadState(ImageState::kUploading);
  StartLauncher();
  EXPECT_TRUE(AwaitState(RequestValidation(), RequestState::kFailed));
}

}  // namespace
}  // namespace nodepool::launcher
