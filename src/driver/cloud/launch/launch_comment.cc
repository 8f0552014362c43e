#include "driver/cloud/launch/launch_comment.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::string_view kBegin = "Launched as ";
constexpr std::size_t kMaxComment = 400;

}  // namespace

std::string LaunchComment(const Instance& instance, const std::string& choice) {
  std::string what = instance.choice.empty() ? choice : instance.choice;
  if (what.empty() && !instance.hourly_price) return "";
  if (what.empty()) what = instance.machine_type.empty() ? "one machine" : instance.machine_type;
  std::string comment = fmt::format("{}{}", kBegin, Excerpt(what, kMaxComment));
  if (instance.hourly_price) comment += fmt::format("; {} per hour", *instance.hourly_price);
  return comment;
}

bool IsLaunchComment(std::string_view comment) { return comment.starts_with(kBegin); }

}  // namespace nodepool::driver::cloud
