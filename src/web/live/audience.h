#pragma once

#include <compare>
#include <string>

namespace nodepool::web {

// Who may see an event. One about a lease is encoded twice: for its client, whose text has access data, and
// for others who may see the leases of all.
struct Audience {
  std::string client = {};  // whose lease it is about; empty: everybody may see the event
  bool is_client = false;   // for that client alone, else for the others
};

// The client of a stream.
struct Viewer {
  std::string client = {};  // name of its token; empty: none was asked for
  bool sees_all = false;    // leases of other clients, too

  auto operator<=>(const Viewer&) const = default;
};

inline bool MaySee(const Viewer& viewer, const Audience& audience) {
  if (audience.client.empty()) return true;
  bool is_own = viewer.client == audience.client;
  return audience.is_client ? is_own : viewer.sees_all && !is_own;
}

}  // namespace nodepool::web
