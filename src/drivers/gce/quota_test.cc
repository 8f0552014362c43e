// Limits of a region and what others use of them (driver-gce.md 11).
#include "drivers/gce/compute/quota.h"

#include "drivers/gce/gce_fixture_for_test.h"

namespace nodepool::drivers::gce {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class GceQuotaTest : public GceTest {
 protected:
  Resources Need() { return adapter->QuotaForLabel(*label).resources(); }
  Resources Limits() { return time.Run(adapter->QuotaLimits()).resources(); }
  double OfOthers(const std::string& resource) { return adapter->UsedByOthers()->Get(resource); }
};

TEST(CpuMetricTest, EachFamilyCountsUnderItsOwn) {
  for (const char* type : {"n1-standard-1", "e2-medium", "f1-micro", "g1-small", "custom-2-4096"})
    EXPECT_EQ(CpuMetric(type, false, false), "CPUS") << type;
  EXPECT_EQ(CpuMetric("n2-standard-2", false, true), "N2_CPUS");
  EXPECT_EQ(CpuMetric("n2d-custom-2-4096", false, false), "N2D_CPUS");
  EXPECT_EQ(CpuMetric("c3-standard-4", true, true), "PREEMPTIBLE_CPUS");
  EXPECT_EQ(CpuMetric("c3-standard-4", true, false), "C3_CPUS");
}

// GCE-40, GCE-41
TEST_F(GceQuotaTest, LimitsAndWhatOthersUse) {
  label->volume_type = "pd-ssd";
  google.quotas = {{"CPUS", {24, 12}},           {"INSTANCES", {50, 1}},     {"CPUS_ALL_REGIONS", {32, 2}},
                   {"IN_USE_ADDRESSES", {8, 0}}, {"SSD_TOTAL_GB", {500, 0}}, {"NETWORKS", {5, 5}}};
  Start();
  EXPECT_EQ(Need(), (Resources{{"instances", 1},
                               {"cores", 2},
                               {"ram", 4096},
                               {"CPUS", 2},
                               {"CPUS_ALL_REGIONS", 2},
                               {"IN_USE_ADDRESSES", 1},
                               {"SSD_TOTAL_GB", 10}}));
  Resources limits = Limits();
  EXPECT_EQ(limits.at("CPUS"), 24);
  EXPECT_EQ(limits.at("instances"), 50);
  EXPECT_EQ(limits.at("CPUS_ALL_REGIONS"), 32);
  EXPECT_FALSE(limits.contains("NETWORKS"));
  EXPECT_EQ(OfOthers("CPUS"), 12);
  Launch();
  google.quotas["CPUS"].second = 14;
  time.Advance(std::chrono::seconds(10));
  Limits();
  EXPECT_EQ(OfOthers("CPUS"), 12) << "our own node is not others'";
}

// GCE-35, GCE-42
TEST_F(GceQuotaTest, SpotHasALimitOfItsOwnOnlyWhereThereIsOne) {
  label->use_spot = true;
  google.quotas["PREEMPTIBLE_CPUS"] = {0, 0};
  Start();
  EXPECT_TRUE(Need().contains("CPUS"));
  google.quotas["PREEMPTIBLE_CPUS"] = {8, 0};
  EXPECT_EQ(Limits().at("PREEMPTIBLE_CPUS"), 8);
  EXPECT_TRUE(Need().contains("PREEMPTIBLE_CPUS"));
  EXPECT_FALSE(Need().contains("CPUS"));
}

// GCE-43
TEST_F(GceQuotaTest, WithoutFiguresGooglesRefusalsAreTheLimit) {
  FailNext("regions.get", 403, "forbidden", 1000);
  Start();
  Launch();
  EXPECT_THAT(results, ::testing::ElementsAre("ready"));
  EXPECT_THAT(time.Run(adapter->FindFaults(*config)), Contains(HasSubstr("quotas: ")));
}

// GCE-62
TEST_F(GceQuotaTest, AnIdleProviderAsksLittle) {
  Start();
  time.Advance(std::chrono::minutes(30));
  EXPECT_LE(google.Count("instances.list"), 7);
  EXPECT_LE(google.Count("regions.get"), 7);
  EXPECT_EQ(google.Count("zoneOperations.list"), 0);
}

TEST_F(GceQuotaTest, WhatIsWrongIsFound) {
  config->cloud_images["other"] = {};
  config->cloud_images["other"].name = "other";
  config->cloud_images["other"].project = "debian-cloud";
  config->cloud_images["other"].family = "debian-99";
  Start();
  EXPECT_THAT(time.Run(adapter->FindFaults(*config)),
              ::testing::ElementsAre(HasSubstr("cloud image other: project debian-cloud has no image")));
}

}  // namespace
}  // namespace nodepool::drivers::gce
