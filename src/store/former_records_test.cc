#include "store/former_records.h"

#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

const ImageName kFormerImage("debian");
const ProviderName kFormerCloud("cloud");

class FormerRecordsTest : public ::testing::Test {
 protected:
  FormerRecordsTest() {
    images_.Start();
    w_.Run(images_.WaitSynced());
  }
  ~FormerRecordsTest() override { w_.Run(images_.Stop()); }

  // Its last state began so long after its znode was made.
  StoredBuild MakeBuild(Duration after_znode) {
    ImageBuild record;
    record.state = ImageState::kReady;
    record.state_time = w_.time.loop().Now() + after_znode;
    zk::HeldLock lock = *w_.Run(w_.store.images.TryLock(kFormerImage));
    StoredBuild build = w_.Run(w_.store.images.CreateBuild(kFormerImage, record, lock));
    w_.Run(w_.store.tree.Unlock(lock));
    w_.time.RunUntil([&] { return images_.builds().contains(build.id); });
    return build;
  }
  UploadKey MakeUpload(const BuildKey& build) {
    zk::HeldLock lock = *w_.Run(w_.store.images.TryLockUploads(build, kFormerCloud));
    StoredUpload upload = w_.Run(w_.store.images.CreateUpload(build, kFormerCloud, {}, lock));
    w_.Run(w_.store.tree.Unlock(lock));
    return upload.id;
  }
  bool WasRemoved(const UploadKey& upload) {
    return w_.Run(WasUploadRemoved(w_.store, images_, upload.build.build, upload.provider, upload.upload));
  }

  World w_;
  ImageCache images_{w_.time.loop(), *w_.client};
};

// D-99
TEST_F(FormerRecordsTest, TheTreeTellsWhichUploadsItHad) {
  StoredBuild build = MakeBuild(std::chrono::minutes(1));
  UploadKey upload = MakeUpload(build.id);
  EXPECT_FALSE(WasRemoved(upload)) << "it is there";
  w_.Run(w_.store.images.RemoveUpload(upload));
  EXPECT_TRUE(WasRemoved(upload));
  UploadKey later = upload;
  later.upload = UploadId("0000000002");
  EXPECT_FALSE(WasRemoved(later)) << "nobody had this number yet";
  UploadKey elsewhere = upload;
  elsewhere.provider = ProviderName("other");
  EXPECT_FALSE(WasRemoved(elsewhere));
  UploadKey of_other = upload;
  of_other.build.build = BuildId("0123456789abcdef0123456789abcdef");
  EXPECT_FALSE(WasRemoved(of_other)) << "of a build that the tree does not know";
}

// D-99
TEST_F(FormerRecordsTest, ABuildThatWasBroughtHereProvesNothing) {
  StoredBuild build = MakeBuild(-std::chrono::hours(1));
  EXPECT_FALSE(IsMadeHere(images_.builds().at(build.id)));
  UploadKey upload = MakeUpload(build.id);
  w_.Run(w_.store.images.RemoveUpload(upload));
  EXPECT_FALSE(WasRemoved(upload));
}

// D-99
TEST_F(FormerRecordsTest, TheTreeTellsWhichNodesItHad) {
  NodeId node = w_.Run(w_.store.nodes.Create({}));
  EXPECT_FALSE(w_.Run(WasNodeRemoved(w_.store, node)));
  w_.Erase("/nodepool/nodes/" + node.value);
  EXPECT_TRUE(w_.Run(WasNodeRemoved(w_.store, node)));
  for (const char* text : {"0000000001", "", "-000000001", "../../x", "lock", "99999999999"}) {
    NodeId other(text);
    EXPECT_FALSE(w_.Run(WasNodeRemoved(w_.store, other))) << text;
  }
}

}  // namespace
}  // namespace nodepool::store
