#include "listing/daemon_listing.h"

#include "model/cell.h"

namespace nodepool::listing {

namespace {

Cell PageCell(const Component& component, const PageOf& page_of) {
  bool has_page = component.kind == ComponentKind::kLauncher && component.locks_slots;
  return has_page ? Cell(page_of(component)) : Cell();
}

}  // namespace

std::vector<Column> DaemonColumns() {
  return {{.key = "kind", .title = "Daemon", .fit = {Importance::kAlways}},
          {.key = "hostname", .title = "Host", .fit = kName},
          {.key = "state", .title = "State", .kind = Kind::kState, .fit = {Importance::kHigh}},
          {.key = "version", .title = "Version", .fit = {Importance::kMedium, 12}},
          {.key = "page", .title = "Page", .fit = {Importance::kHigh}}};
}

Listing ListDaemons(const std::map<std::string, Component>& components, const PageOf& page_of) {
  Listing listing{DaemonColumns(), {}};
  for (const auto& [path, component] : components) {
    if (component.kind == ComponentKind::kPool) continue;
    listing.rows.push_back({Cell::OfText(ToString(component.kind)), Cell::OfText(component.hostname),
                            Cell::OfText(ToString(component.state)), TextCell(component.version),
                            PageCell(component, page_of)});
  }
  return listing;
}

}  // namespace nodepool::listing
