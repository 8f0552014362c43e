#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

// Points in time as text, always in UTC. A reader returns nullopt for malformed text, and for times that the
// clock does not reach (after 2112) the last one that it does, as FromSeconds.
namespace nodepool {

// "2026-01-31T12:00:00Z"; reads "+00:00" for "Z", too, and ignores a fraction of a second.
std::string Iso8601(WallTime time);
std::optional<WallTime> ParseIso8601(const std::string& text);

// "Sat, 31 Jan 2026 12:00:00 GMT", as in headers of HTTP.
std::string HttpDate(WallTime time);
std::optional<WallTime> ParseHttpDate(const std::string& text);

}  // namespace nodepool
