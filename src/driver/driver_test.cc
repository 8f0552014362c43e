#include "driver/driver.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"

namespace nodepool::driver {

namespace {

// F-quota-sub, OT-6
TEST(QuotaInformationTest, SubtractsFromALimit) {
  auto rest = QuotaInformation::Limit({{"cores", 8}, {"ram", 8192}});
  rest.Subtract(QuotaInformation::Amount({{"cores", 2}, {"instances", 1}}));
  EXPECT_EQ(rest.resources(), (Resources{{"cores", 6}, {"instances", kUnlimited}, {"ram", 8192}}));
  EXPECT_TRUE(rest.NonNegative());
}

// F-quota-add, OT-6
TEST(QuotaInformationTest, AddsAmounts) {
  QuotaInformation used;
  used.Add(QuotaInformation::Amount({{"cores", 4}, {"instances", 1}, {"ram", 1024}}));
  used.Add(QuotaInformation::Amount({{"cores", 1}, {"instances", 1}, {"volumes", 2}}));
  EXPECT_EQ(used.resources(), (Resources{{"cores", 5}, {"instances", 2}, {"ram", 1024}, {"volumes", 2}}));
}

// F-quota-extra, OT-6
TEST(QuotaInformationTest, ExtraResourcesTakeTheDefaultOfTheirOwner) {
  auto rest = QuotaInformation::Limit({{"cores", 8}, {"ram", 8192}, {"green", 16}});
  rest.Subtract(QuotaInformation::Amount(
      {{"cores", 10}, {"instances", 1}, {"ram", 8192}, {"red", 8}, {"blue", 2}, {"green", 8}}));
  EXPECT_EQ(rest.resources(), (Resources{{"cores", -2},
                                         {"instances", kUnlimited},
                                         {"ram", 0},
                                         {"red", kUnlimited},
                                         {"blue", kUnlimited},
                                         {"green", 8}}));
  EXPECT_FALSE(rest.NonNegative());
  EXPECT_EQ(rest.Get("never named"), kUnlimited);
}

TEST(QuotaInformationTest, ALimitMayBeUsedUp) {
  auto rest = QuotaInformation::Limit({{"cores", 2}});
  rest.Subtract(QuotaInformation::Amount({{"cores", 2}}));
  EXPECT_TRUE(rest.NonNegative());
}

TEST(QuotaInformationTest, InfinityMinusInfinityFits) {
  auto rest = QuotaInformation::Limit({});
  rest.Subtract(QuotaInformation::Limit({}));
  EXPECT_TRUE(rest.NonNegative());
  EXPECT_EQ(rest.Get("cores"), kUnlimited);
}

TEST(QuotaInformationTest, OneInstanceNeedsNothingElse) {
  EXPECT_EQ(QuotaInformation::OneInstance().resources(),
            (Resources{{"cores", 0}, {"instances", 1}, {"ram", 0}}));
}

TEST(QuotaInformationTest, PoolLimitCarriesMaxServersAsInstances) {
  PoolConfig pool;
  pool.max_servers = 4;
  pool.limits = {{"cores", 16}};
  EXPECT_EQ(pool.Limit().resources(), (Resources{{"cores", 16}, {"instances", 4}, {"ram", kUnlimited}}));
}

TEST(PoolLimitTest, IsAnIntegerWhereTheDriverSaysNothingElse) {
  auto kind_of = [](config::Setting setting) { return Limit(std::move(setting), "x").setting.schema.kind(); };
  EXPECT_EQ(kind_of({"max-x", "Their x."}), config::Schema::Kind::kInt);
  EXPECT_EQ(kind_of({"max-x", config::Schema::Float(), "Their x."}), config::Schema::Kind::kFloat);
}

class NamedDriver : public Driver {
 public:
  explicit NamedDriver(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  const config::Schema& ProviderSchema() const override {
    throw Error(Verdict::kFail, "this driver has no schema");
  }
  std::shared_ptr<const ProviderConfig> LoadProviderConfig(const config::ProviderSection&,
                                                           config::Config&) override {
    return nullptr;
  }
  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment,
                                           std::shared_ptr<const ProviderConfig>) override {
    return nullptr;
  }

 private:
  std::string name_;
};

TEST(RegistryTest, FindsDriversByName) {
  Registry registry;
  registry.Add(std::make_unique<NamedDriver>("static"));
  registry.Add(std::make_unique<NamedDriver>("fake"));
  ASSERT_NE(registry.Find("fake"), nullptr);
  EXPECT_EQ(registry.Find("fake")->name(), "fake");
  EXPECT_EQ(registry.Find("unheard-of"), nullptr);
  EXPECT_EQ(registry.Names(), (std::vector<std::string>{"fake", "static"}));
}

// D-86
TEST(RegistryTest, RefusesANameTwice) {
  Registry registry;
  registry.Add(std::make_unique<NamedDriver>("fake"));
  try {
    registry.Add(std::make_unique<NamedDriver>("fake"), "/drivers/mine.so");
    FAIL() << "the second one was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
    for (const char* word : {"'fake'", "/drivers/mine.so", "this program"})
      EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
  }
}

}  // namespace

}  // namespace nodepool::driver
