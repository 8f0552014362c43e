#pragma once

#include <bitset>
#include <string_view>

#include "base/error.h"

namespace nodepool::web {

// What an event of the stream is about. Those of records have the names of the resources under /api/v1.
enum class Topic {
  kNodes,
  kRequests,
  kImages,
  kBuilds,
  kUploads,
  kProviders,
  kComponents,
  kJobs,
  kProblems,
  kLeases,
  kChanges,
  kSamples,
  kStatus
};
inline constexpr std::string_view kTopicNames[] = {"nodes",     "requests",   "images", "builds",   "uploads",
                                                   "providers", "components", "jobs",   "problems", "leases",
                                                   "changes",   "samples",    "status"};

constexpr std::string_view NameOf(Topic topic) { return kTopicNames[static_cast<std::size_t>(topic)]; }

using Topics = std::bitset<std::size(kTopicNames)>;

inline bool Contains(Topics topics, Topic topic) { return topics[static_cast<std::size_t>(topic)]; }

// "nodes,requests"; where it is empty all topics but leases, which not everybody may see. Error(kInvalid)
// names a topic that there is not.
Expected<Topics> ReadTopics(std::string_view names);

}  // namespace nodepool::web
