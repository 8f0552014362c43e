#include "web/live/topic.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::web {

Expected<Topics> ReadTopics(std::string_view names) {
  Topics topics;
  if (names.empty()) return topics.set().reset(static_cast<std::size_t>(Topic::kLeases));
  for (const std::string& name : Split(names, ',')) {
    auto found = std::ranges::find(kTopicNames, name);
    if (found == std::end(kTopicNames)) {
      return Unexpected(Verdict::kInvalid,
                        fmt::format("topics are {}, not {}.", fmt::join(kTopicNames, ", "), Excerpt(name)));
    }
    topics.set(static_cast<std::size_t>(found - std::begin(kTopicNames)));
  }
  return topics;
}

}  // namespace nodepool::web
