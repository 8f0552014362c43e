#pragma once

#include <map>
#include <string>

#include "listing/listing.h"
#include "model/component.h"

namespace nodepool::listing {

std::vector<Column> DaemonColumns();

// Every launcher and builder that has announced itself: builders first, each kind by its name in ZooKeeper.
Listing ListDaemons(const std::map<std::string, Component>& components);

}  // namespace nodepool::listing
