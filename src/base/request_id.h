#pragma once

#include <string>
#include <string_view>

namespace nodepool {

// Services give each call an id, by which their operators find it. A message may name it, and then differs
// each time although it says the same; who compares messages leaves it out.

// "<message> (request id <id>)"; the message alone if the id is empty, long or has unusual characters.
std::string WithRequestId(std::string message, std::string_view id);

// The message without what WithRequestId has added to it, or to texts that it consists of.
std::string WithoutRequestIds(std::string_view message);

// Makes `message` the last one, and returns whether the one before said something else. For log lines that
// are written once for each cause.
bool ReplaceMessage(std::string& last, std::string_view message);

}  // namespace nodepool
