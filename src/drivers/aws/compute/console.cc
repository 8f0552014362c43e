#include "drivers/aws/compute/console.h"

#include "async/attempt.h"
#include "base/encoding.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::size_t kMostBytes = 16 * 1024;

std::string ReadOutput(const pugi::xml_node& root) { return TextAt(root, {"output"}); }

Task<std::string> AskForConsole(Ec2& ec2, std::string instance, bool wants_latest) {
  Query query("GetConsoleOutput");
  query.Add("InstanceId", std::move(instance));
  if (wants_latest) query.Add("Latest", true);
  return ec2.Call<std::string>(std::move(query), &ReadOutput);
}

}  // namespace

Task<std::optional<std::string>> ReadConsole(Ec2& ec2, std::string instance) {
  Task<std::string> reading = AskForConsole(ec2, instance, true);
  Outcome<std::string> output = co_await Attempt(std::move(reading));
  // Types of before Nitro.
  if (!output && CodeOf(output.error()).starts_with("Unsupported")) {
    Task<std::string> again = AskForConsole(ec2, std::move(instance), false);
    output = co_await Attempt(std::move(again));
  }
  if (!output) output.error().Rethrow();
  std::string text = FromBase64(*output).value_or("");
  if (text.empty()) co_return std::nullopt;
  if (text.size() > kMostBytes) text.erase(0, text.find('\n', text.size() - kMostBytes) + 1);
  co_return text;
}

}  // namespace nodepool::drivers::aws
