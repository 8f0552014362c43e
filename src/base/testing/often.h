#pragma once

namespace nodepool::testing {

// How often a test does something with other chances, or among how many: `usual`, or `sanitized` in a build
// with sanitizers, where it takes ten times as long.
constexpr int Often(int usual, int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
  constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  constexpr bool kIsSanitized = false;
#endif
  return kIsSanitized ? sanitized : usual;
}

}  // namespace nodepool::testing
