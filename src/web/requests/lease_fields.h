#pragma once

#include "launcher/launcher.h"
#include "web/api/field_table.h"

namespace nodepool::web {

// A lease as it is shown to a client.
struct LeaseEntry {
  const store::StoredLease& lease;
  const launcher::Launcher& launcher;
  bool is_own = false;  // the client's own: access data is shown
};

// The fields of a lease (http-requests.md 3).
const FieldTable<LeaseEntry>& LeaseFields();

}  // namespace nodepool::web
