#include "listing/state_style.h"

#include <algorithm>
#include <array>
#include <utility>

namespace nodepool::listing {
namespace {

constexpr std::string_view kGood = "\x1b[32m";
constexpr std::string_view kComing = "\x1b[33m";
constexpr std::string_view kWorking = "\x1b[36m";
constexpr std::string_view kStopped = "\x1b[35m";
constexpr std::string_view kBad = "\x1b[31m";
constexpr std::string_view kGoing = "\x1b[2m";

constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kStyles = {
    {{"ready", kGood},       {"fulfilled", kGood}, {"running", kGood},   {"up", kGood},
     {"starting", kComing},  {"failing", kBad},    {"draining", kGoing}, {"init", kComing},
     {"building", kComing},  {"testing", kComing}, {"pending", kComing}, {"requested", kComing},
     {"uploading", kComing}, {"in-use", kWorking}, {"used", kWorking},   {"hold", kStopped},
     {"paused", kStopped},   {"deleting", kGoing}, {"deleted", kGoing},  {"stopped", kGoing},
     {"failed", kBad},       {"aborted", kBad}}};

}  // namespace

std::string_view StyleOf(std::string_view state) {
  auto found = std::ranges::find(kStyles, state, [](const auto& style) { return style.first; });
  return found == kStyles.end() ? std::string_view() : found->second;
}

}  // namespace nodepool::listing
