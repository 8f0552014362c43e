#include "launcher/provider_health.h"

#include <utility>

#include "base/request_id.h"

namespace nodepool::launcher {
namespace {

// A driver whose causes differ each time must not fill the memory.
constexpr std::size_t kMaxCauses = 16;

}  // namespace

HealthRecord::HealthRecord(Loop& loop, ProviderName name, log::Logger logger)
    : loop_(loop), name_(std::move(name)), logger_(std::move(logger)) {
  now_.since = loop_.Now();
}

bool HealthRecord::Failed(const std::string& what, driver::ProviderFault fault) {
  // It becomes a part of sentences.
  while (fault.cause.ends_with('.')) fault.cause.pop_back();
  Log(what, fault);
  bool was_failing = !now_.fault.empty();
  bool is_new = WithoutRequestIds(now_.fault) != WithoutRequestIds(fault.cause);
  is_new |= std::exchange(now_.is_away, fault.is_outage) != fault.is_outage;
  now_.is_up = false;
  if (!was_failing) now_.since = loop_.Now();
  if (is_new) now_.fault = std::move(fault.cause);
  now_.next_attempt = fault.next_attempt;
  return is_new;
}

bool HealthRecord::Succeeded() {
  if (now_.is_up) return false;
  if (!now_.fault.empty()) logger_.Info("Provider {} can be used again", name_);
  logged_.clear();
  now_ = {.is_up = true, .was_up = true, .since = loop_.Now()};
  return true;
}

void HealthRecord::Log(const std::string& what, const driver::ProviderFault& fault) {
  std::string again;
  if (fault.next_attempt) {
    auto pause = std::chrono::round<std::chrono::seconds>(*fault.next_attempt - loop_.SteadyNow());
    again = fmt::format("; tried again in {} s", pause.count());
  }
  if (logged_.size() >= kMaxCauses) logged_.clear();
  bool is_new = logged_.insert(WithoutRequestIds(fault.cause)).second;
  log::Level level = is_new ? log::Level::kError : log::Level::kDebug;
  logger_.Write(level, fmt::format("{}: {}{}", what, fault.cause, again));
}

}  // namespace nodepool::launcher
