#pragma once

#include <functional>
#include <map>
#include <string>

#include "listing/listing.h"
#include "model/component.h"

namespace nodepool::listing {

std::vector<Column> DaemonColumns();

// The URL of a launcher's page.
using PageOf = std::function<std::string(const Component& launcher)>;

// Every registered launcher and builder: builders first, each kind by its name in ZooKeeper. Launchers of the
// Python implementation have no page.
Listing ListDaemons(const std::map<std::string, Component>& components, const PageOf& page_of);

}  // namespace nodepool::listing
