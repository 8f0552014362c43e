#include "listing/daemon_listing.h"

#include "model/cell.h"

namespace nodepool::listing {

std::vector<Column> DaemonColumns() {
  return {{.key = "kind", .title = "Daemon", .fit = {Importance::kAlways}},
          {.key = "hostname", .title = "Host", .fit = kName},
          {.key = "state", .title = "State", .kind = Kind::kState, .fit = {Importance::kHigh}},
          {.key = "version", .title = "Version", .fit = {Importance::kMedium, 12}}};
}

Listing ListDaemons(const std::map<std::string, Component>& components) {
  Listing listing{DaemonColumns(), {}};
  for (const auto& [path, component] : components) {
    if (component.kind == ComponentKind::kPool) continue;
    listing.rows.push_back({Cell::OfText(ToString(component.kind)), Cell::OfText(component.hostname),
                            Cell::OfText(ToString(component.state)), TextCell(component.version)});
  }
  return listing;
}

}  // namespace nodepool::listing
