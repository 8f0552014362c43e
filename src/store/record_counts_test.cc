#include "store/record_counts.h"

#include <gtest/gtest.h>

namespace nodepool::store {
namespace {

TEST(RecordCountsTest, RecordsAreCountedByKind) {
  RecordCounts counts;
  for (const char* path :
       {"/nodepool", "/nodepool/nodes", "/nodepool/nodes/0000000001", "/nodepool/nodes/0000000002",
        "/nodepool/nodes/0000000002/lock", "/nodepool/requests/200-0000000000", "/nodepool/images/deb",
        "/nodepool/images/deb/builds/0000000001", "/nodepool/images/deb/builds/0000000001/providers/p",
        "/nodepool/images/deb/builds/0000000001/providers/p/images/0000000001", "/nodepool/images/fed/pause",
        "/nodepool/components/launcher/x", "/zuul/nodes"}) {
    counts.Add(path);
  }
  EXPECT_EQ(counts.nodes, 2U);
  EXPECT_EQ(counts.requests, 1U);
  EXPECT_EQ(counts.images.size(), 2U);
  EXPECT_EQ(counts.builds, 1U);
  EXPECT_EQ(counts.uploads, 1U);
}

}  // namespace
}  // namespace nodepool::store
