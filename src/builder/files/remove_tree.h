#pragma once

#include <string>

namespace nodepool::builder {

// Removes a directory with all that is in it. Follows no symbolic link and enters no mount: Error(kFail) that
// names the mount, with everything on it left alone. A missing directory is no error. Blocks.
void RemoveTree(const std::string& path);

}  // namespace nodepool::builder
