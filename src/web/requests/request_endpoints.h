#pragma once

#include <vector>

#include "async/loop.h"
#include "launcher/launcher.h"
#include "web/access/access.h"
#include "web/api/open_api.h"
#include "web/router.h"

namespace nodepool::web {

// A lease as it is shown to a client.
struct LeaseEntry {
  const store::StoredLease& lease;
  const launcher::Launcher& launcher;
  bool is_own = false;  // the client's own: access data is shown
};

// The fields of a lease (http-requests.md 3).
const FieldTable<LeaseEntry>& LeaseFields();

// Requests over HTTP (http-requests.md 3). All arguments outlive them.
std::vector<Endpoint> RequestEndpoints(Loop& loop, launcher::Launcher& launcher, Access& access);

}  // namespace nodepool::web
