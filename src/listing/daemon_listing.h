#pragma once

#include <map>
#include <string>

#include "listing/listing.h"
#include "model/component.h"

namespace nodepool::listing {

std::vector<Column> DaemonColumns();

// Every registered launcher and builder: builders first, each kind by its name in ZooKeeper.
Listing ListDaemons(const std::map<std::string, Component>& components);

}  // namespace nodepool::listing
