#pragma once

#include <string>

#include "base/clock.h"

namespace nodepool::drivers::kubernetes {

// When the first certificate of a PEM text ends. Error(kInvalid) names `place`: it is no certificate, or it
// has ended at `now`.
WallTime EndOfCertificate(const std::string& pem, const std::string& place, WallTime now);

}  // namespace nodepool::drivers::kubernetes
