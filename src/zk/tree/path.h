#pragma once

#include <string_view>

namespace nodepool::zk {

// Whether a server accepts `path` as the name of a znode: absolute, no trailing
// slash, no empty or relative component, valid UTF-8 without control characters
// and without what ZooKeeper excludes besides (private use, U+FFF0 and above).
bool IsValidPath(std::string_view path);

}  // namespace nodepool::zk
