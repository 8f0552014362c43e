#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "listing/listing.h"

namespace nodepool::listing {

// The keys of the columns that a person names by their keys or titles, in lower or upper case.
// Error(kInvalid): there is no column of that name; it says which there are.
Expected<std::vector<std::string>> KeysOf(const std::vector<std::string>& names,
                                          const std::vector<Column>& columns);

// Leaves the columns with these keys, in this order.
void KeepColumns(Listing& listing, const std::vector<std::string>& keys);

// Leaves out Column::is_extra.
void DropExtraColumns(Listing& listing);

}  // namespace nodepool::listing
