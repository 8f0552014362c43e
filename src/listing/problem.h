#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace nodepool::listing {

// Something that an operator should check, for `nodepool status`, the web API and the page.
struct Problem {
  enum class Severity {
    kBad,   // something does not work until an operator acts
    kWait,  // something waits, or is switched off, and may pass by itself
  };
  // What it is about: an entry of a resource under /api/v1.
  struct Subject {
    std::string_view topic = {};  // "providers", "images", "requests" ...; empty: none
    std::string key = {};         // as in the events about the topic; empty: all of it
  };
  // Launches of a label in a pool of a provider. What is empty is any.
  struct Place {
    ProviderName provider = {};
    PoolName pool = {};
    LabelName label = {};
  };

  std::string_view kind;  // "provider-failing"; for programs, stable
  std::string name = {};  // distinguishes it from others of its kind; empty: there is one at most
  Severity severity = Severity::kBad;
  // Null: not known, and no request waits for it.
  std::optional<WallTime> since = std::nullopt;
  Subject subject = {};
  std::string text;               // one sentence without a full stop
  std::string remedy;             // what to do: one sentence without a full stop
  std::vector<Place> stops = {};  // where nothing can be launched because of it
  // Requests that wait because of it, maybe of others as well; set where `stops` does not say which they are.
  std::size_t delayed_requests = 0;
  std::string command = {};  // shows more

  // "provider-failing/ovh-gra1": the same for as long as the problem lasts.
  std::string id() const { return name.empty() ? std::string(kind) : std::string(kind) + "/" + name; }
};

using Problems = std::vector<Problem>;

std::string_view ToString(Problem::Severity severity);  // "bad" or "wait"
std::vector<std::string_view> SeverityWords();
// Every kind that there is.
std::vector<std::string_view> ProblemKinds();
// The place of the problem's kind among all: with the same severity and delay, the smaller one is more
// urgent.
std::size_t RankOf(const Problem& problem);
// The command that shows more of the problem.
std::string CommandOf(const Problem& problem);

}  // namespace nodepool::listing
