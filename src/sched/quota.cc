#include "sched/quota.h"

namespace nodepool::sched {
namespace {

double AmountOf(const Resources& amount, const std::string& resource) {
  auto it = amount.find(resource);
  return it == amount.end() ? 0 : it->second;
}

}  // namespace

void Add(Resources& amount, const Resources& more, int times) {
  for (const auto& [resource, value] : more) amount[resource] += value * times;
}

void Subtract(Resources& amount, const Resources& less) {
  for (const auto& [resource, value] : less) amount[resource] -= value;
}

Resources Shortage(const Resources& limit, const Resources& used, const Resources& need) {
  Resources shortage;
  for (const auto& [resource, allowed] : limit) {
    double needed = AmountOf(need, resource);
    if (needed <= 0) continue;  // over a lowered limit already, but this takes nothing more of it
    double missing = AmountOf(used, resource) + needed - allowed;
    if (missing > 0) shortage[resource] = missing;
  }
  return shortage;
}

}  // namespace nodepool::sched
