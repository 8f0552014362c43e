#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/breaker.h"
#include "model/component.h"
#include "store/records.h"

// The paths of everything in the tree (coordination.md 3.1). No other file knows them.
namespace nodepool::store::paths {

inline constexpr std::string_view kNodes = "/nodepool/nodes";
inline constexpr std::string_view kRequests = "/nodepool/requests";
inline constexpr std::string_view kRequestLocks = "/nodepool/requests-lock";
inline constexpr std::string_view kImages = "/nodepool/images";
inline constexpr std::string_view kComponents = "/nodepool/components";
inline constexpr std::string_view kNamedLocks = "/nodepool/locks";
inline constexpr std::string_view kElections = "/nodepool/elections";
inline constexpr std::string_view kMinReady = "/nodepool/min-ready";
inline constexpr std::string_view kJobs = "/nodepool/jobs";
inline constexpr std::string_view kHoldNotes = "/nodepool/jobs/holds";
inline constexpr std::string_view kLeases = "/nodepool/leases";
inline constexpr std::string_view kProviderPauses = "/nodepool/paused-providers";
inline constexpr std::string_view kBreakers = "/nodepool/breakers";
inline constexpr std::string_view kRunners = "/nodepool/runners";
inline constexpr std::string_view kRunnerRuns = "/nodepool/runners/runs";

std::string Node(const NodeId& id);
std::string NodeLock(const NodeId& id);
std::string Request(const RequestId& id);
std::string RequestLock(const RequestId& id);
std::string Image(const ImageName& image);
std::string Pause(const ImageName& image);
std::string BuildRequest(const ImageName& image);
std::string Builds(const ImageName& image);
std::string ImageLock(const ImageName& image);  // of the builder that builds it
std::string Build(const BuildKey& key);
std::string BuildLock(const BuildKey& key);  // of the process that marks it
std::string Providers(const BuildKey& build);
std::string Uploads(const BuildKey& build, const ProviderName& provider);
std::string UploadsLock(const BuildKey& build,
                        const ProviderName& provider);  // of the builder that uploads it there
std::string Upload(const UploadKey& key);
std::string UploadLock(const UploadKey& key);  // of the process that marks or removes it
std::string Components(ComponentKind kind);
std::string JobRule(const JobId& id);
std::string HoldNote(const NodeId& node);
std::string Lease(const LeaseId& id);
std::string RunnerRun(const RunId& id);
std::string RunnerSet(const RunnerSetKey& key);
std::string RunnerElection(const RunnerSetKey& key);
std::string HookedJobs(const std::string& service);
std::string HookedJob(const HookedJobKey& key);
// Bytes that are no ASCII letters, digits, "-" or "_" become %XX.
std::string ProviderPause(const ProviderName& provider);
// "<provider>", "<provider>:<pool>" or "<provider>:<pool>:<label>", each with bytes written as above.
std::string Breaker(const BreakerKey& key);
// A "/" in the name becomes "%2F", a "%" becomes "%25".
std::string NamedLock(std::string_view name);

// What a path below kNodes means.
struct BelowNodes {
  enum class Part { kRecord, kContender, kOther };
  Part part = Part::kOther;
  NodeId id;
  std::string contender;  // the name
};
BelowNodes ParseBelowNodes(std::string_view path);

// The id of a request's record; nullopt for anything else below kRequests.
std::optional<RequestId> ParseRequest(std::string_view path);

// What a path below kRequestLocks means; the contender is empty for the directory.
struct BelowRequestLocks {
  RequestId id;
  std::string contender;
};
std::optional<BelowRequestLocks> ParseBelowRequestLocks(std::string_view path);

// What a path below kImages means; the fields that the part does not need are empty.
struct BelowImages {
  enum class Part {
    kImage,
    kPause,
    kBuildRequest,
    kImageContender,  // of a builder that builds, or wants to
    kBuild,
    kProvider,          // of a build
    kUploadsContender,  // of a builder that uploads, or wants to
    kUpload,
    kOther,
  };
  Part part = Part::kOther;
  UploadKey key;
  std::string contender;  // the name
};
BelowImages ParseBelowImages(std::string_view path);

// The kind of a component by its path below kComponents; nullopt for the
// directories and for kinds we do not know.
std::optional<ComponentKind> ParseComponent(std::string_view path);

// What a path below kJobs means; one of the two is set, or none.
struct BelowJobs {
  std::optional<JobId> rule;
  std::optional<NodeId> hold_note;
};
BelowJobs ParseBelowJobs(std::string_view path);

// What a path below kRunners means; one of them is set, or none.
struct BelowRunners {
  std::optional<RunId> run;
  std::optional<RunnerSetKey> set;
  std::optional<HookedJobKey> job;
};
BelowRunners ParseBelowRunners(std::string_view path);

// The id of a lease's record; nullopt for anything else below kLeases.
std::optional<LeaseId> ParseLease(std::string_view path);

// The provider whose switch it is; nullopt for anything else below kProviderPauses, and for names that
// ProviderPause() does not make.
std::optional<ProviderName> ParseProviderPause(std::string_view path);

// What the breaker is of; nullopt for anything else below kBreakers, and for names that Breaker() does not
// make.
std::optional<BreakerKey> ParseBreaker(std::string_view path);

// Whether a child of an uploads directory is an upload: ten digits.
bool IsUploadId(std::string_view name);
// Whether a child of a builds directory is a build: anything but its lock.
bool IsBuildId(std::string_view name);

// `path` without `root` and the slash after it.
std::string Below(std::string_view root, std::string_view path);

}  // namespace nodepool::store::paths
