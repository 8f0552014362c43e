#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "listing/configured.h"
#include "listing/listing.h"
#include "listing/provider_listing.h"
#include "listing/record_listing.h"
#include "store/cache/caches.h"

namespace nodepool::listing {

// The data of the status screen. The caches that were started are complete.
struct StatusRecords {
  const Configured& configured;
  const store::Caches& caches;
  Reasons why;  // why requests wait
  WallTime now;
};

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

// Requests that wait for longer are a problem.
inline constexpr Duration kLongWait = std::chrono::minutes(5);

// What an operator should check, the most urgent first (http.md 1.10); empty if there are no problems. A pure
// function of records and configuration. Its work grows with providers, labels, images and waiting requests,
// and with the nodes that are being deleted or that nobody serves, not with all nodes.
Problems FindProblems(const StatusRecords& records);

// Its parts, a file each; all append.
void FindDaemonProblems(Problems& out, const StatusRecords& records);
void FindProviderProblems(Problems& out, const StatusRecords& records);
void FindLabelProblems(Problems& out, const StatusRecords& records);
void FindImageProblems(Problems& out, const StatusRecords& records);
void FindRequestProblems(Problems& out, const StatusRecords& records);
void FindRunnerProblems(Problems& out, const StatusRecords& records);

// "1 node", "2 nodes".
std::string Counted(std::size_t count, std::string_view noun);
std::string InOneLine(std::string text);
bool Runs(const StatusRecords& records, ComponentKind kind);
// Where the launcher runs that has this id; empty: the id is not one of ours.
std::string_view HostOf(std::string_view launcher_id);

// Sets `delayed_requests` of the problems that stop launches. A request is delayed by a problem while it
// waits, does not have all its nodes on their way, and for one of its labels every pool that offers it is
// stopped, at least one of them by this problem: what has another way is not delayed. A problem whose
// beginning is not known begins with the first request that it delays.
void CountDelayedRequests(Problems& problems, const StatusRecords& records);

// `nodepool status`: the state of everything on one screen.

// The keys of the parts in JSON, in their order: problems, the most urgent first, then what the
// parts below show.
inline constexpr std::string_view kStatusParts[] = {"problems", "daemons", "providers", "pools",
                                                    "requests", "runners", "images"};

// A listing for each part.
std::vector<Listing> StatusParts(const StatusRecords& records, WaitingRows waiting, const PageOf& page_of);

// The problems, each with its remedy, since when it lasts, what it delays and how to see more, then a table
// for each other part that has rows, except the images: their problems are already listed. Without a line
// break at the end. If a width is given, no line is wider.
std::string ToStatusScreen(const std::vector<Listing>& parts, WallTime now, Colors colors,
                           std::optional<std::size_t> width);

// One object with a list for each part.
std::string ToStatusJson(const std::vector<Listing>& parts, WallTime now);

}  // namespace nodepool::listing
