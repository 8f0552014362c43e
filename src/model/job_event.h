#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace nodepool {

// Longer messages about jobs are refused.
inline constexpr std::size_t kMaxJobMessageBytes = 64 * 1024;

// A CI system's message about a run of a job (operations.md 13.6).
struct JobEvent {
  enum class Topic { kStarted, kCompleted, kFinalized };

  Topic topic = Topic::kFinalized;
  std::string job;
  std::string node_name;              // empty: it did not run on a node of Nodepool
  std::optional<std::string> status;  // the result, "SUCCESS" if it is good

  // An end without a status counts as failure (operations.md 13.7).
  bool is_failure() const { return topic == Topic::kFinalized && status != "SUCCESS"; }
};

// Parses "TOPIC JSON", as publishers send it. The error says what is wrong; it quotes only keys and
// the topic.
Expected<JobEvent> ParseJobMessage(std::string_view message);

// Parses JSON without a topic in front, whose key `event` may name the topic; the default is
// onFinalized.
Expected<JobEvent> ParseJobEvent(std::string_view json);

}  // namespace nodepool
