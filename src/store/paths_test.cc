#include "store/paths.h"

#include <gtest/gtest.h>

namespace nodepool::store::paths {
namespace {

TEST(Paths, OfNodesReadBack) {
  NodeId id("0000000107");
  EXPECT_EQ(Node(id), "/nodepool/nodes/0000000107");
  EXPECT_EQ(NodeLock(id), "/nodepool/nodes/0000000107/lock");
  EXPECT_EQ(ParseBelowNodes(Node(id)).part, BelowNodes::Part::kRecord);
  EXPECT_EQ(ParseBelowNodes(Node(id)).id, id);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id)).part, BelowNodes::Part::kOther);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id) + "/x__lock__0000000001").part, BelowNodes::Part::kContender);
  EXPECT_EQ(ParseBelowNodes(NodeLock(id) + "/x__rlock__0000000001").part, BelowNodes::Part::kOther);
  EXPECT_EQ(ParseBelowNodes("/nodepool/nodesy/1").part, BelowNodes::Part::kOther);
}

TEST(Paths, OfRequestsReadBack) {
  RequestId id("200-0000000012");
  EXPECT_EQ(ParseRequest(Request(id)), id);
  EXPECT_FALSE(ParseRequest(Request(id) + "/x"));
  EXPECT_EQ(ParseBelowRequestLocks(RequestLock(id))->id, id);
  EXPECT_EQ(ParseBelowRequestLocks(RequestLock(id) + "/x__lock__0000000001")->contender,
            "x__lock__0000000001");
  EXPECT_FALSE(ParseBelowRequestLocks(RequestLock(id) + "/other"));
}

TEST(Paths, OfImagesReadBack) {
  UploadKey key{BuildKey{ImageName("deb12"), BuildId("4f0e")}, ProviderName("east"), UploadId("0000000001")};
  EXPECT_EQ(Upload(key), "/nodepool/images/deb12/builds/4f0e/providers/east/images/0000000001");
  EXPECT_EQ(ParseBelowImages(Upload(key)).part, BelowImages::Part::kUpload);
  EXPECT_EQ(ParseBelowImages(Upload(key)).key, key);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12").part, BelowImages::Part::kImage);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/pause").part, BelowImages::Part::kPause);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e").part, BelowImages::Part::kBuild);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/lock").part, BelowImages::Part::kOther);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e/providers").part, BelowImages::Part::kOther);
  EXPECT_EQ(ParseBelowImages("/nodepool/images/deb12/builds/4f0e/providers/p").part,
            BelowImages::Part::kProvider);
  EXPECT_EQ(ParseBelowImages(Uploads(key.build, key.provider) + "/lock").part, BelowImages::Part::kOther);
}

TEST(Paths, OfComponentsShowTheKind) {
  EXPECT_EQ(ParseComponent("/nodepool/components/pool/np010000000003"), ComponentKind::kPool);
  EXPECT_FALSE(ParseComponent("/nodepool/components/pool"));
  EXPECT_FALSE(ParseComponent("/nodepool/components/web/x0000000003"));
  EXPECT_EQ(Below(kComponents, "/nodepool/components/pool/np010000000003"), "pool/np010000000003");
}

}  // namespace
}  // namespace nodepool::store::paths
