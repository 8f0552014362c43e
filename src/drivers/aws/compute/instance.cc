#include "drivers/aws/compute/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

namespace {

Task<Ec2Instances> ListInstances(Ec2& ec2, Query query) {
  query.Add("MaxResults", 1000);
  std::vector<Ec2Instance> list = co_await ec2.List(std::move(query), &ReadReservations);
  Ec2Instances instances;
  for (Ec2Instance& instance : list) {
    std::string id = instance.id;
    instances.insert_or_assign(std::move(id), std::move(instance));
  }
  co_return instances;
}

}  // namespace

std::map<std::string, std::string> ReadTagSet(const pugi::xml_node& node) {
  std::map<std::string, std::string> tags;
  for (const pugi::xml_node& tag : Items(node, "tagSet")) tags[TextAt(tag, {"key"})] = TextAt(tag, {"value"});
  return tags;
}

Ec2Instance ReadInstance(const pugi::xml_node& item) {
  Ec2Instance instance;
  instance.id = TextAt(item, {"instanceId"});
  instance.state = TextAt(item, {"instanceState", "name"});
  instance.type = TextAt(item, {"instanceType"});
  instance.zone = TextAt(item, {"placement", "availabilityZone"});
  instance.private_ipv4 = TextAt(item, {"privateIpAddress"});
  instance.public_ipv4 = TextAt(item, {"ipAddress"});
  instance.ipv6 = TextAt(item, {"networkInterfaceSet", "item", "ipv6AddressesSet", "item", "ipv6Address"});
  instance.is_spot = TextAt(item, {"instanceLifecycle"}) == "spot";
  instance.host = TextAt(item, {"placement", "hostId"});
  instance.tags = ReadTagSet(item);
  instance.reason_code = TextAt(item, {"stateReason", "code"});
  instance.reason = TextAt(item, {"stateReason", "message"});
  return instance;
}

std::vector<Ec2Instance> ReadReservation(const pugi::xml_node& root) {
  std::vector<Ec2Instance> instances;
  for (const pugi::xml_node& item : Items(root, "instancesSet")) {
    Ec2Instance instance = ReadInstance(item);
    if (!instance.id.empty()) instances.push_back(std::move(instance));
  }
  return instances;
}

std::vector<Ec2Instance> ReadReservations(const pugi::xml_node& root) {
  std::vector<Ec2Instance> instances;
  for (const pugi::xml_node& reservation : Items(root, "reservationSet")) {
    for (Ec2Instance& instance : ReadReservation(reservation)) instances.push_back(std::move(instance));
  }
  return instances;
}

Task<Ec2Instances> ListInstancesOf(Ec2& ec2, std::string provider) {
  Query query("DescribeInstances");
  query.AddFilter(std::string("tag:") + driver::cloud::kProviderKey, {std::move(provider)});
  return ListInstances(ec2, std::move(query));
}

Task<Ec2Instances> ListAllInstances(Ec2& ec2) { return ListInstances(ec2, Query("DescribeInstances")); }

namespace {

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
  co_return driver::cloud::EndOfConsole(FromBase64(*output).value_or(""));
}

std::vector<SpotRequest> ReadSpotRequests(const pugi::xml_node& root) {
  std::vector<SpotRequest> requests;
  for (const pugi::xml_node& item : Items(root, "spotInstanceRequestSet")) {
    SpotRequest request;
    request.instance = TextAt(item, {"instanceId"});
    request.status = TextAt(item, {"status", "code"});
    request.message = TextAt(item, {"status", "message"});
    if (!request.instance.empty()) requests.push_back(std::move(request));
  }
  return requests;
}

Task<std::vector<SpotRequest>> ListMarkedSpotRequests(Ec2& ec2) {
  Query query("DescribeSpotInstanceRequests");
  query.AddFilter("status-code", {"marked-for-termination", "marked-for-stop"});
  query.Add("MaxResults", 1000);
  return ec2.List(std::move(query), &ReadSpotRequests);
}

namespace {

std::string ReadAllocation(const pugi::xml_node& root) { return TextAt(root, {"hostIdSet", "item"}); }

// Why the host could not be released; empty: it could, or there is none. EC2 reports it in an answer that is
// no error.
std::string ReadRelease(const pugi::xml_node& root) {
  for (const pugi::xml_node& item : Items(root, "unsuccessful")) {
    if (TextAt(item, {"error", "code"}).ends_with(".NotFound")) continue;
    return Excerpt(TextAt(item, {"error", "code"}) + ": " + TextAt(item, {"error", "message"}), 300);
  }
  return "";
}

}  // namespace

std::vector<Host> ReadHosts(const pugi::xml_node& root) {
  std::vector<Host> hosts;
  for (const pugi::xml_node& item : Items(root, "hostSet")) {
    Host host{TextAt(item, {"hostId"}), TextAt(item, {"state"}), ReadTagSet(item)};
    if (!host.id.empty()) hosts.push_back(std::move(host));
  }
  return hosts;
}

Task<Hosts> ListHostsOf(Ec2& ec2, std::string provider) {
  Query query("DescribeHosts");
  query.AddFilter(std::string("tag:") + driver::cloud::kProviderKey, {std::move(provider)});
  std::vector<Host> list = co_await ec2.List(std::move(query), &ReadHosts);
  Hosts hosts;
  for (Host& host : list) {
    std::string id = host.id;
    hosts.insert_or_assign(std::move(id), std::move(host));
  }
  co_return hosts;
}

Task<std::string> AllocateHost(Ec2& ec2, std::string type, std::string zone,
                               std::map<std::string, std::string> tags, std::string token) {
  Query query("AllocateHosts");
  query.Add("AutoPlacement", "off").Add("HostRecovery", "off").Add("HostMaintenance", "off");
  query.Add("AvailabilityZone", zone).Add("InstanceType", type).Add("Quantity", 1);
  query.Add("ClientToken", token);
  AddTagSpecifications({"dedicated-host"}, tags, query);
  std::string id = co_await ec2.Call<std::string>(std::move(query), &ReadAllocation);
  if (id.empty()) throw Error(Verdict::kRetry, "AWS accepted a dedicated host and returned no id");
  co_return id;
}

Task<> ReleaseHost(Ec2& ec2, std::string id) {
  Query query("ReleaseHosts");
  query.AddList("HostId", {id});
  Task<std::string> call = ec2.Call<std::string>(std::move(query), &ReadRelease);
  Outcome<std::string> refusal = co_await Attempt(std::move(call));
  if (FailedWith(refusal, Verdict::kNotFound)) co_return;
  if (!refusal) refusal.error().Rethrow();
  if (!refusal->empty()) {
    throw Error(Verdict::kRetry, fmt::format("dedicated host {} cannot be released yet: {}", id, *refusal));
  }
}

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

namespace {

struct FamilyCodes {
  std::string_view on_demand;
  std::string_view spot;
};

constexpr FamilyCodes kStandard{"L-1216C47A", "L-34B43A08"};
constexpr FamilyCodes kGraphics{"L-DB2E81BA", "L-3819A6DF"};
constexpr FamilyCodes kHighMemory{"L-43DA4232", ""};

// By the letters that a type begins with.
const std::map<std::string_view, FamilyCodes> kFamilies = {
    {"a", kStandard},
    {"c", kStandard},
    {"d", kStandard},
    {"h", kStandard},
    {"i", kStandard},
    {"im", kStandard},
    {"is", kStandard},
    {"m", kStandard},
    {"r", kStandard},
    {"t", kStandard},
    {"z", kStandard},
    {"dl", {"L-6E869C2A", "L-85EED4F7"}},
    {"f", {"L-74FC7D96", "L-88CF9481"}},
    {"g", kGraphics},
    {"gr", kGraphics},
    {"vt", kGraphics},
    {"u", kHighMemory},
    {"u-", kHighMemory},
    {"inf", {"L-1945791B", "L-B5D1601B"}},
    {"p", {"L-417A185B", "L-7212CCBC"}},
    {"x", {"L-7295265B", "L-E3A00192"}},
    {"trn", {"L-2C3B7624", "L-6B0D517C"}},
    {"hpc", {"L-F7808C92", ""}},
};

const std::map<std::string_view, VolumeCodes> kVolumeTypes = {
    {"io1", {"L-FD252861", "L-B3A130E6"}}, {"io2", {"L-09BD8365", "L-8D977E7E"}}, {"gp2", {"L-D18FCD1D", ""}},
    {"gp3", {"L-7A658B76", ""}},           {"sc1", {"L-17AF77E8", ""}},           {"st1", {"L-82ACEF56", ""}},
    {"standard", {"L-9CF3C2EB", ""}},
};

}  // namespace

std::string_view CodeOfType(std::string_view type, bool is_spot) {
  std::size_t letters = type.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  auto family = kFamilies.find(type.substr(0, letters));
  if (family == kFamilies.end()) return "";
  return is_spot ? family->second.spot : family->second.on_demand;
}

VolumeCodes CodesOfVolume(std::string_view volume_type) {
  auto codes = kVolumeTypes.find(volume_type);
  return codes == kVolumeTypes.end() ? VolumeCodes() : codes->second;
}

namespace {

// By the part of an instance type before the dot.
const std::map<std::string_view, std::string_view> kHostCodes = {
    {"a1", "L-949445B0"},         {"c3", "L-8D142A2E"},        {"c4", "L-E4BF28E0"},
    {"c5", "L-81657574"},         {"c5a", "L-03F01FD8"},       {"c5d", "L-C93F66A2"},
    {"c5n", "L-20F13EBD"},        {"c6a", "L-D75D2E84"},       {"c6g", "L-A749B537"},
    {"c6gd", "L-545AED39"},       {"c6gn", "L-5E3A299D"},      {"c6i", "L-5FA3355A"},
    {"c6id", "L-1BBC5241"},       {"c6in", "L-6C2C40CC"},      {"c7a", "L-698B67E5"},
    {"c7g", "L-13B8FCE8"},        {"c7gd", "L-EF58B059"},      {"c7gn", "L-97677CE3"},
    {"c7i", "L-587AA6E3"},        {"d2", "L-8B27377A"},        {"dl1", "L-AD667A3D"},
    {"f1", "L-5C4CD236"},         {"g3", "L-DE82EABA"},        {"g3s", "L-9675FDCD"},
    {"g4ad", "L-FD8E9B9A"},       {"g4dn", "L-CAE24619"},      {"g5", "L-A6E7FE5E"},
    {"g5g", "L-4714FFEA"},        {"g6", "L-B88B9D6B"},        {"gr6", "L-E68C3AFF"},
    {"h1", "L-84391ECC"},         {"i2", "L-6222C1B6"},        {"i3", "L-8E60B0B1"},
    {"i3en", "L-77EE2B11"},       {"i4g", "L-F62CBADB"},       {"i4i", "L-0300530D"},
    {"im4gn", "L-93155D6F"},      {"inf", "L-5480EFD2"},       {"inf2", "L-E5BCF7B5"},
    {"is4gen", "L-CB4F5825"},     {"m3", "L-3C82F907"},        {"m4", "L-EF30B25E"},
    {"m5", "L-8B7BF662"},         {"m5a", "L-B10F70D6"},       {"m5ad", "L-74F41837"},
    {"m5d", "L-8CCBD91B"},        {"m5dn", "L-DA07429F"},      {"m5n", "L-24D7D4AD"},
    {"m5zn", "L-BD9BD803"},       {"m6a", "L-80F2B67F"},       {"m6g", "L-D50A37FA"},
    {"m6gd", "L-84FB37AA"},       {"m6i", "L-D269BEFD"},       {"m6id", "L-FDB0A352"},
    {"m6idn", "L-9721EDD9"},      {"m6in", "L-D037CF10"},      {"m7a", "L-4740F819"},
    {"m7g", "L-9126620E"},        {"m7gd", "L-F8516154"},      {"m7i", "L-30E31217"},
    {"mac1", "L-A8448DC5"},       {"mac2", "L-5D8DADF5"},      {"mac2-m2", "L-B90B5B66"},
    {"mac2-m2pro", "L-14F120D1"}, {"p2", "L-2753CF59"},        {"p3", "L-A0A19F79"},
    {"p3dn", "L-B601B3B6"},       {"p4d", "L-86A789C3"},       {"p5", "L-5136197D"},
    {"r3", "L-B7208018"},         {"r4", "L-313524BA"},        {"r5", "L-EA4FD6CF"},
    {"r5a", "L-8FE30D52"},        {"r5ad", "L-EC7178B6"},      {"r5b", "L-A2D59C67"},
    {"r5d", "L-8814B54F"},        {"r5dn", "L-4AB14223"},      {"r5n", "L-52EF324A"},
    {"r6a", "L-BC1589C5"},        {"r6g", "L-B6D6065D"},       {"r6gd", "L-EF284EFB"},
    {"r6i", "L-F13A970A"},        {"r6id", "L-B89271A9"},      {"r6idn", "L-C4EABC2C"},
    {"r6in", "L-EA99608B"},       {"r7a", "L-4D15192B"},       {"r7g", "L-67B8B4C7"},
    {"r7gd", "L-01137DCE"},       {"r7i", "L-55E05032"},       {"r7iz", "L-BC9FCC71"},
    {"t3", "L-1586174D"},         {"trn1", "L-5E4FB836"},      {"trn1n", "L-39926A58"},
    {"u-12tb1", "L-D6994875"},    {"u-18tb1", "L-5F7FD336"},   {"u-24tb1", "L-FACBE655"},
    {"u-3tb1", "L-7F5506AB"},     {"u-6tb1", "L-89870E8E"},    {"u-9tb1", "L-98E1FFAC"},
    {"u7in-16tb", "L-75B9BECB"},  {"u7in-24tb", "L-CA51381E"}, {"u7in-32tb", "L-9D28191F"},
    {"vt1", "L-A68CFBF7"},        {"x1", "L-DE3D9563"},        {"x1e", "L-DEF8E115"},
    {"x2gd", "L-5CC9EA82"},       {"x2idn", "L-A84ABF80"},     {"x2iedn", "L-D0AA08B1"},
    {"x2iezn", "L-888B4496"},     {"z1d", "L-F035E935"},
};

}  // namespace

std::string_view CodeOfHost(std::string_view type) {
  auto code = kHostCodes.find(type.substr(0, type.find('.')));
  return code == kHostCodes.end() ? std::string_view() : code->second;
}

namespace {

constexpr Duration kCollecting = std::chrono::milliseconds(100);
constexpr std::size_t kMostInOneCall = 100;

bool IsIdCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace

std::vector<std::string> NamedIn(const std::string& message, const std::vector<std::string>& batch) {
  std::vector<std::string> named;
  for (const std::string& id : batch) {
    std::size_t at = message.find(id);
    bool is_whole = at != std::string::npos &&
                    (at + id.size() == message.size() || !IsIdCharacter(message[at + id.size()]));
    if (is_whole) named.push_back(id);
  }
  return named;
}

Task<bool> Terminations::Terminate(std::string id) {
  auto answer = std::make_shared<OneShot<bool>>();
  if (next_.empty()) tasks_.Spawn("terminate instances", SendLater());
  next_[id].push_back(answer);
  bool is_known = co_await answer->Take();
  co_return is_known;
}

Task<> Terminations::SendLater() {
  co_await tasks_.loop().SleepFor(kCollecting);
  Waiting all = std::exchange(next_, {});
  while (!all.empty()) {
    Waiting batch;
    while (!all.empty() && batch.size() < kMostInOneCall) batch.insert(all.extract(all.begin()));
    co_await Send(std::move(batch));
  }
}

void Terminations::Answer(const Waiting& batch, const std::string& id, bool is_known) {
  for (const auto& answer : batch.at(id)) answer->Set(is_known);
}

// One id that EC2 does not accept makes it refuse the whole call: the ones that it names are taken out, and
// where it names none, each half is sent.
Task<> Terminations::Send(Waiting batch) {
  while (!batch.empty()) {
    std::vector<std::string> ids;
    for (const auto& [id, answers] : batch) ids.push_back(id);
    Query query("TerminateInstances");
    query.AddList("InstanceId", ids);
    Outcome<> sent = co_await Attempt(ec2_.Call(std::move(query)));
    if (sent) {
      for (const std::string& id : ids) Answer(batch, id, true);
      co_return;
    }
    const std::string code = CodeOf(sent.error());
    bool is_unknown = code.starts_with("InvalidInstanceID");
    std::vector<std::string> named = NamedIn(sent.error().message(), ids);
    if (named.empty() && (ids.size() == 1 || code.empty())) named = ids;
    for (const std::string& id : named) {
      if (is_unknown) {
        Answer(batch, id, false);
      } else {
        for (const auto& answer : batch.at(id)) answer->Fail(sent.error().exception());
      }
      batch.erase(id);
    }
    if (!named.empty()) continue;
    Waiting half;
    while (half.size() < ids.size() / 2) half.insert(batch.extract(batch.begin()));
    co_await Send(std::move(half));
  }
}

}  // namespace nodepool::drivers::aws
