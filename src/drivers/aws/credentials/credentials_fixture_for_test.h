#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/testing/test_environment.h"
#include "drivers/aws/credentials/account.h"
#include "drivers/aws/credentials/credentials.h"

namespace nodepool::drivers::aws {

// A user with a folder for the shared files, and variables.
class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    variables = {{"HOME", folder},
                 {"AWS_CONFIG_FILE", folder + "/config"},
                 {"AWS_SHARED_CREDENTIALS_FILE", folder + "/credentials"}};
  }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder + "/" + name) << text; }

  CredentialPlan Plan(std::optional<std::string> named = std::nullopt) {
    Profiles profiles = ReadProfiles(variables);
    std::string profile = ChooseProfile(profiles, variables, named);
    return PlanCredentials(profiles, variables, profile, named.has_value());
  }
  std::string PlanError(std::optional<std::string> named = std::nullopt) {
    try {
      Plan(named);
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "no error";
  }
  Account AccountFor(std::optional<std::string> region = "us-west-2",
                     std::optional<std::string> profile = std::nullopt) {
    return ResolveAccount(ReadProfiles(variables), variables, region, profile);
  }

  testing::TemporaryFolder temporary_;
  std::string folder = temporary_.path();
  Variables variables;
};

}  // namespace nodepool::drivers::aws
