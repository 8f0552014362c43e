#include "driver/cloud/launch/launch_failure.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud {
namespace {

// How clouds begin the codes of refusals for who calls, and for what is booted.
constexpr std::array<std::string_view, 5> kCredentialCodes = {"Auth", "Unauthorized", "InvalidClientTokenId",
                                                              "SignatureDoesNotMatch", "ExpiredToken"};
constexpr std::array<std::string_view, 2> kImageCodes = {"InvalidAMI", "Image"};

template <std::size_t N>
bool BeginsWithOneOf(std::string_view code, const std::array<std::string_view, N>& beginnings) {
  return std::ranges::any_of(beginnings,
                             [code](std::string_view beginning) { return code.starts_with(beginning); });
}

bool NamesImage(const std::string& message) {
  return Lower(message).find("image") != std::string::npos || message.find("InvalidAMI") != std::string::npos;
}

std::optional<FailureKind> KindOfAnswer(const api::ApiError& error) {
  const int status = error.status();
  if (status == 401 || status == 403 || status == 407 || BeginsWithOneOf(error.code(), kCredentialCodes))
    return FailureKind::kAuthentication;
  bool is_refused = status >= 400 && status < 500;
  if (BeginsWithOneOf(error.code(), kImageCodes) || (is_refused && NamesImage(error.message())))
    return FailureKind::kImage;
  return std::nullopt;
}

FailureKind KindOfMachine(const LaunchError& error) {
  switch (error.kind()) {
    case LaunchError::Kind::kCapacity:
      return FailureKind::kCapacity;
    case LaunchError::Kind::kStatus:
      return NamesImage(error.message()) ? FailureKind::kImage : FailureKind::kBoot;
    case LaunchError::Kind::kNetwork:
      return FailureKind::kBoot;
    case LaunchError::Kind::kCandidate:
      break;
  }
  return FailureKind::kOther;
}

}  // namespace

FailureKind KindOf(const Failure& failure) {
  if (failure.verdict() == Verdict::kQuota) return FailureKind::kQuota;
  if (failure.verdict() == Verdict::kTimedOut) return FailureKind::kBoot;
  try {
    failure.Rethrow();
  } catch (const LaunchError& error) {
    return KindOfMachine(error);
  } catch (const api::ApiError& error) {
    if (std::optional<FailureKind> kind = KindOfAnswer(error)) return *kind;
  } catch (...) {
  }
  // What an adapter has found wrong with a label.
  bool is_invalid = failure.verdict() == Verdict::kInvalid || failure.verdict() == Verdict::kNotFound;
  return is_invalid && NamesImage(failure.message()) ? FailureKind::kImage : FailureKind::kOther;
}

}  // namespace nodepool::driver::cloud
