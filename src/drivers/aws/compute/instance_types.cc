#include "drivers/aws/compute/instance_types.h"

#include <algorithm>
#include <utility>

#include "async/attempt.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/quota_codes.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::size_t kTypesPerCall = 100;

}  // namespace

std::vector<TypeSize> ReadTypes(const pugi::xml_node& root) {
  std::vector<TypeSize> types;
  for (const pugi::xml_node& item : Items(root, "instanceTypeSet")) {
    TypeSize type;
    type.name = TextAt(item, {"instanceType"});
    type.cores = std::max(0, NumberAt(item, {"vCpuInfo", "defaultCores"}));
    type.vcpus = std::max(0, NumberAt(item, {"vCpuInfo", "defaultVCpus"}));
    type.ram = std::max(0, NumberAt(item, {"memoryInfo", "sizeInMiB"}));
    types.push_back(std::move(type));
  }
  return types;
}

driver::QuotaInformation NeedOfHost(const std::string& type) {
  Resources need{{"instances", 1}};
  std::string_view code = CodeOfHost(type);
  if (!code.empty()) need[std::string(code)] = 1;
  return driver::QuotaInformation::Amount(std::move(need));
}

Task<> InstanceTypes::Learn(std::set<std::string> names) {
  std::vector<std::string> batch;
  for (const std::string& name : names) {
    if (!name.empty() && Find(name) == nullptr) batch.push_back(name);
    if (batch.size() < kTypesPerCall) continue;
    std::vector<std::string> full = std::exchange(batch, {});
    co_await Ask(std::move(full));
  }
  if (!batch.empty()) co_await Ask(std::move(batch));
}

void InstanceTypes::WarnOfUnknown(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (Find(name) != nullptr || !warned_of_.insert(name).second) continue;
    logger_.Warning(
        "The size of instance type {} is not known; an instance of it counts as one instance only", name);
  }
}

driver::QuotaInformation InstanceTypes::NeedOf(const std::string& name, bool is_spot) const {
  const TypeSize* type = Find(name);
  if (type == nullptr) return driver::QuotaInformation::OneInstance();
  Resources need{{"instances", 1}, {"cores", type->cores}, {"ram", type->ram}};
  std::string_view code = CodeOfType(name, is_spot);
  if (!code.empty()) need[std::string(code)] = type->vcpus;
  return driver::QuotaInformation::Amount(std::move(need));
}

// One unknown name makes EC2 refuse the whole call, so halves are asked for until it stands alone.
Task<> InstanceTypes::Ask(std::vector<std::string> names) {
  Query query("DescribeInstanceTypes");
  query.AddList("InstanceType", names);
  Outcome<std::vector<TypeSize>> types = co_await Attempt(ec2_.List(std::move(query), &ReadTypes));
  if (types) {
    for (const std::string& name : names) SetUnknown(name);
    for (const TypeSize& type : *types) Set(type.name, type);
    co_return;
  }
  if (CodeOf(types.error()) != "InvalidInstanceType") types.error().Rethrow();
  if (names.size() == 1) {
    SetUnknown(names.front());
    co_return;
  }
  auto middle = names.begin() + static_cast<std::ptrdiff_t>(names.size() / 2);
  std::vector<std::string> first(names.begin(), middle);
  std::vector<std::string> second(middle, names.end());
  co_await Ask(std::move(first));
  co_await Ask(std::move(second));
}

}  // namespace nodepool::drivers::aws
