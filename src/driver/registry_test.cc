#include <gtest/gtest.h>

#include "base/error.h"
#include "driver/driver.h"
#include "driver/provider.h"

namespace nodepool::driver {
namespace {

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
