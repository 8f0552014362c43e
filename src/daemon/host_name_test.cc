#include "daemon/host_name.h"

#include <gtest/gtest.h>

namespace nodepool::daemon {
namespace {

TEST(HostNameTest, TheFirstNameWithADotIsTheQualifiedOne) {
  EXPECT_EQ(QualifiedName({"nb01.example.org", {"nb01", "other.example.org"}}), "nb01.example.org");
  EXPECT_EQ(QualifiedName({"nb01", {"builder", "nb01.example.org", "nb01.example.com"}}), "nb01.example.org");
  EXPECT_EQ(QualifiedName({"localhost", {"nb01"}}), "localhost");
  EXPECT_EQ(QualifiedName({"localhost", {}}), "localhost");
}

TEST(HostNameTest, ASlowResolverIsNotAwaited) {
  EXPECT_EQ(FullyQualifiedHostname(Duration::zero()).empty(), WholeHostname().empty());
  EXPECT_EQ(Hostname(), WholeHostname().substr(0, Hostname().size()));
}

}  // namespace
}  // namespace nodepool::daemon
