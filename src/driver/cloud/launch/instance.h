#pragma once

#include <optional>
#include <string>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// Where a machine can be reached; empty: nowhere there.
struct MachineAddresses {
  std::string public_ipv4;
  std::string public_ipv6;
  std::string private_ipv4;
};
// The instance has these addresses, and is used at the first of them that there is.
void SetAddresses(const MachineAddresses& addresses, Instance& instance);

// What Adapter::ConsoleLog returns of a console's text: its end, at most 16 KiB in whole lines; none: it is
// empty.
std::optional<std::string> EndOfConsole(std::string text);

// Throws Error(kFail), naming the field, if an adapter's instance is impossible or must not get into a
// record: an id that is neither text nor an object, text that is not UTF-8, amounts that are negative or NaN.
void CheckInstance(const Instance& instance);

// The same for what an adapter lists: an entry that cannot be distinguished from others would be retained or
// deleted by mistake.
void CheckResource(const Resource& resource);

}  // namespace nodepool::driver::cloud
