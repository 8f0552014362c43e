#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "listing/listing.h"

namespace nodepool::listing {

// The keys of the columns that are given by their keys or titles, in lower or upper case. Error(kInvalid) if
// a column does not exist; its message lists the columns.
Expected<std::vector<std::string>> KeysOf(const std::vector<std::string>& names,
                                          const std::vector<Column>& columns);

// Retains only the columns with these keys, in this order.
void KeepColumns(Listing& listing, const std::vector<std::string>& keys);

// Removes the columns with Column::is_extra.
void DropExtraColumns(Listing& listing);

}  // namespace nodepool::listing
