#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace nodepool {

// Longer messages about jobs are not read.
inline constexpr std::size_t kMaxJobMessageBytes = 64 * 1024;

// What a CI system tells of a run of a job (operations.md 13.6).
struct JobEvent {
  enum class Topic { kStarted, kCompleted, kFinalized };

  Topic topic = Topic::kFinalized;
  std::string job;
  std::string node_name;              // empty: it ran on no node of ours
  std::optional<std::string> status;  // the result, "SUCCESS" if it is good

  // An end without a status counts as failure (operations.md 13.7).
  bool is_failure() const { return topic == Topic::kFinalized && status != "SUCCESS"; }
};

// Of "TOPIC JSON", as publishers send it. The error says what is wrong; it quotes nothing but
// keys and the topic.
Expected<JobEvent> ParseJobMessage(std::string_view message);

// Of the JSON alone, whose key `event` may name the topic; else it is onFinalized.
Expected<JobEvent> ParseJobEvent(std::string_view json);

}  // namespace nodepool
