#pragma once

#include <vector>

#include "launcher/launcher.h"
#include "launcher/provider_manager.h"
#include "launcher/requests/wait_reasons.h"
#include "listing/record_listing.h"
#include "listing/status.h"
#include "model/json.h"
#include "store/cache/cached_records.h"
#include "store/cache/caches.h"
#include "store/records.h"
#include "web/api/open_api.h"
#include "web/router.h"

namespace nodepool::web {

// The fields of the entries under /api/v1 (build/docs/reference/api.md is generated from them).

const FieldTable<store::StoredNode>& NodeFields();
const FieldTable<launcher::RequestStatus>& RequestFields();
const FieldTable<launcher::WaitReason>& WaitFields();
const FieldTable<launcher::ReportedReason>& ReasonFields();
// The reason that decides, or null.
boost::json::value ReasonValue(const std::optional<sched::RequestReason>& reason);
JsonType ReasonType();
const FieldTable<store::StoredBuild>& BuildFields();
const FieldTable<store::StoredUpload>& UploadFields();
const FieldTable<launcher::ProviderStatus>& ProviderFields();

// An image in ZooKeeper, with everything known of it.
struct ImageEntry {
  const store::ImageCache& images;
  const ImageName& name;
  std::optional<WallTime> next_build = std::nullopt;
  std::vector<ProviderName> missing_in = {};  // providers that list it and have no ready upload
};
ImageEntry EntryOf(const launcher::Launcher& launcher, const ImageName& name);
const FieldTable<ImageEntry>& ImageFields();

const FieldTable<listing::Problem>& ProblemFields();

// The switch of a paused provider.
using PauseEntry = std::map<ProviderName, ProviderPause>::value_type;
const FieldTable<PauseEntry>& PauseFields();

// An open breaker.
using BreakerEntry = std::pair<BreakerKey, Breaker>;
const FieldTable<BreakerEntry>& BreakerFields();

// A rule about jobs, with what it holds.
struct JobEntry {
  const store::StoredJobRule& rule;
  const store::NodeCache& nodes;
  const store::JobCache& jobs;
};
const FieldTable<JobEntry>& JobFields();

// Sets of runners, and their jobs.
const FieldTable<listing::RunnerSetRow>& RunnerFields();
const FieldTable<listing::RunnerJobRow>& RunnerJobFields();
// The jobs, with why those wait that have no node yet.
std::vector<listing::RunnerJobRow> RunnerJobsOf(const launcher::Launcher& launcher);

// A registered component: its path below the directory of components, and its record.
using ComponentEntry = std::map<std::string, Component>::value_type;
const FieldTable<ComponentEntry>& ComponentFields();

// GET /api/v1/images/{image}/builds/{build}/log: the last 64 KiB of a build's log, where this process can
// read it; else 404 with the host and the file. Only builds that have a record have a log, and the file is
// named by the record. The launcher outlives it.
Endpoint BuildLogEndpoint(const launcher::Launcher& launcher);

}  // namespace nodepool::web
