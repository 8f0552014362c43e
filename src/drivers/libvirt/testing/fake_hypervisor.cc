#include "drivers/libvirt/testing/fake_hypervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "async/deadline.h"
#include "base/error.h"
#include "base/text.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt::testing {

namespace {

constexpr Duration kCallLimit = std::chrono::seconds(30);
constexpr std::size_t kRoom = 1000;

}  // namespace

Task<> FakeHypervisor::Call() {
  ++calls;
  if (is_stalled_) {
    SteadyTime deadline = loop_.SteadyNow() + kCallLimit;
    bool goes_on = co_await EndsBy(loop_, deadline, "a stalled host", stalled_.Wait());
    if (!goes_on) throw Error(Verdict::kRetry, "the host has not answered in time");
  }
  co_await loop_.SleepFor(call_time);
  if (!is_connected_ || is_cut()) throw Error(Verdict::kRetry, "the host is not connected");
}

void FakeHypervisor::MayBreak(Loss moment, const std::string& call) {
  at_write(moment, call);
  if (loss != moment || !broken_.insert(call).second) return;
  ++losses;
  is_connected_ = false;
  listener_.ConnectionLost("libvirtd has closed the connection");
  throw Error(Verdict::kRetry, "the connection broke");
}

// What is outside of the pool is not known here.
bool FakeHypervisor::IsFile(const std::string& path) const {
  bool is_volume = std::ranges::any_of(volumes, [&](const auto& entry) { return entry.second.path == path; });
  return is_volume || !path.starts_with("/pool/");
}

void FakeHypervisor::GoOn() {
  is_stalled_ = false;
  stalled_.NotifyAll();
}

void FakeHypervisor::Break(const std::string& why) {
  is_connected_ = false;
  is_reachable = false;
  listener_.ConnectionLost(why);
}

void FakeHypervisor::EndDomain(std::string uuid) {
  auto domain = domains.find(uuid);
  for (const std::string& mac : MacAddressesIn(domain->second)) started_.erase(mac);
  domains.erase(domain);
  listener_.DomainEnded(uuid);
}

Task<> FakeHypervisor::Connect() {
  ++calls;
  co_await loop_.SleepFor(call_time);
  if (!is_reachable || is_cut()) throw Error(Verdict::kRetry, "connecting to libvirt: no route to host");
  is_connected_ = true;
}

Task<HostSize> FakeHypervisor::Size() {
  co_await Call();
  co_return size;
}

Task<PoolSpace> FakeHypervisor::Space() {
  co_await Call();
  co_return space;
}

Task<std::vector<std::string>> FakeHypervisor::Domains() {
  co_await Call();
  std::vector<std::string> list;
  for (const auto& [uuid, xml] : domains) list.push_back(xml);
  co_return list;
}

Task<> FakeHypervisor::StartDomain(std::string xml) {
  co_await Call();
  DomainInfo domain = ParseDomain(xml);
  MayBreak(Loss::kBefore, "start " + domain.uuid);
  for (int port : taken_ports) {
    if (xml.find(fmt::format(":{}-:", port)) == std::string::npos) continue;
    refused_ports.push_back(port);
    throw Error(Verdict::kFail,
                fmt::format("Could not set up host forwarding rule 'tcp:127.0.0.1:{}-:22'", port));
  }
  if (domains.contains(domain.uuid)) throw Error(Verdict::kConflict, "the domain exists");
  for (const std::string& mac : MacAddressesIn(xml)) started_[mac] = loop_.SteadyNow();
  domains[domain.uuid] = std::move(xml);
  listener_.DomainStarted(domain.uuid);
  MayBreak(Loss::kAfter, "start " + domain.uuid);
}

Task<> FakeHypervisor::DestroyDomain(std::string uuid) {
  co_await Call();
  at_write(Loss::kBefore, "destroy " + uuid);
  if (domains.contains(uuid)) EndDomain(uuid);
  at_write(Loss::kAfter, "destroy " + uuid);
}

Task<> FakeHypervisor::ResumeDomain(std::string uuid) {
  co_await Call();
  if (!domains.contains(uuid)) throw Error(Verdict::kNotFound, "no domain " + uuid);
  resumed.push_back(uuid);
  if (refuses_to_resume) throw Error(Verdict::kFail, "domain is already running");
}

// With libvirt's header, in which the description's room is larger than the description.
Task<> FakeHypervisor::SaveDomain(std::string uuid, std::string volume, Duration) {
  co_await Call();
  if (!domains.contains(uuid)) throw Error(Verdict::kNotFound, "no domain " + uuid);
  const std::string& xml = domains[uuid];
  std::uint32_t numbers[19] = {2, static_cast<std::uint32_t>(xml.size() + kRoom), 1};
  std::string content = "LibvirtQemudSave";
  content.append(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  content += xml;
  content.append(kRoom, '\0');
  contents[volume] = content + "memory";
  EndDomain(uuid);
}

Task<> FakeHypervisor::RestoreDomain(std::string volume) {
  co_await Call();
  if (!contents.contains(volume)) throw Error(Verdict::kNotFound, "no volume " + volume);
  std::string xml = *DescriptionIn(contents[volume]);
  DomainInfo domain = ParseDomain(xml);
  MayBreak(Loss::kBefore, "restore " + domain.uuid);
  if (domains.contains(domain.uuid)) throw Error(Verdict::kConflict, "the domain exists");
  for (const std::string& mac : MacAddressesIn(xml)) started_[mac] = loop_.SteadyNow() - boot_time;
  domains[domain.uuid] = std::move(xml);
  restored.push_back(domain.uuid);
  MayBreak(Loss::kAfter, "restore " + domain.uuid);
}

// One script at a time, which has ended when it is asked for.
Task<std::string> FakeHypervisor::AskAgent(std::string uuid, std::string command) {
  co_await Call();
  auto domain = domains.find(uuid);
  if (domain == domains.end()) throw Error(Verdict::kNotFound, "no domain " + uuid);
  if (loop_.SteadyNow() < started_[MacAddressesIn(domain->second).front()] + boot_time)
    throw Error(Verdict::kRetry, "the guest agent is not connected");
  boost::json::object query = boost::json::parse(command).as_object();
  if (query["execute"] == "guest-file-open") co_return R"({"return": 1000})";
  if (query["execute"] == "guest-file-close") co_return R"({"return": {}})";
  if (query["execute"] == "guest-file-write") {
    scripts.push_back(FromBase64(std::string_view(query["arguments"].at("buf-b64").as_string())).value());
    if (run_script(uuid, scripts.back()) == 0) with_identity_.insert(uuid);
    co_return R"({"return": {"count": 1, "eof": false}})";
  }
  if (query["execute"] == "guest-exec-status") {
    co_return boost::json::serialize(
        boost::json::value{{"return", {{"exited", true}, {"exitcode", script_status_}}}});
  }
  std::string script(query["arguments"].at("arg").at(1).as_string());
  scripts.push_back(script);
  script_status_ = run_script(uuid, script);
  co_return R"({"return": {"pid": 7}})";
}

Task<std::vector<VolumeInfo>> FakeHypervisor::Volumes() {
  co_await Call();
  std::vector<VolumeInfo> list;
  for (const auto& [name, volume] : volumes) list.push_back(volume);
  co_return list;
}

Task<VolumeInfo> FakeHypervisor::Volume(std::string name) {
  co_await Call();
  auto found = volumes.find(name);
  if (found == volumes.end()) throw Error(Verdict::kNotFound, "no volume " + name);
  co_return found->second;
}

Task<std::string> FakeHypervisor::CreateVolume(NewVolume volume) {
  co_await Call();
  MayBreak(Loss::kBefore, "make " + volume.name);
  if (volumes.contains(volume.name)) throw Error(Verdict::kConflict, "the volume exists");
  if (volume.backing && !IsFile(volume.backing->path))
    throw Error(Verdict::kFail, "inaccessible backing store volume");
  contents.erase(volume.name);
  VolumeInfo made = ParseVolume(VolumeXml(volume));
  made.path = "/pool/" + made.name;
  made.length = made.capacity;
  volumes[made.name] = made;
  MayBreak(Loss::kAfter, "make " + made.name);
  co_return made.path;
}

Task<> FakeHypervisor::WriteVolume(std::string name, std::string bytes) {
  co_await Call();
  at_write(Loss::kBefore, "write " + name);
  if (!volumes.contains(name)) throw Error(Verdict::kNotFound, "no volume " + name);
  std::string& content = contents[name];
  if (content.size() < bytes.size()) content.resize(bytes.size());
  content.replace(0, bytes.size(), bytes);
  MayBreak(Loss::kAfter, "write " + name);
}

Task<std::string> FakeHypervisor::UploadVolume(std::string name, std::string path, Duration) {
  co_await Call();
  if (!volumes.contains(name)) throw Error(Verdict::kNotFound, "no volume " + name);
  contents[name] = std::move(path);
  if (fails_transfers) throw Error(Verdict::kRetry, "the connection broke");
  co_return sha256;
}

Task<std::string> FakeHypervisor::ReadVolumeStart(std::string name, std::uint64_t most) {
  co_await Call();
  if (!volumes.contains(name)) throw Error(Verdict::kNotFound, "no volume " + name);
  co_return contents[name].substr(0, most);
}

Task<> FakeHypervisor::CopyVolume(HostConfig source, std::string name, Duration) {
  co_await Call();
  ++copies;
  const FakeHypervisor& from = *peers->at(source.name);
  if (!volumes.contains(name) || !from.contents.contains(name)) {
    throw Error(Verdict::kNotFound, "no volume " + name);
  }
  co_await loop_.SleepFor(copy_time);
  if (fails_transfers) throw Error(Verdict::kRetry, "the connection broke");
  contents[name] = from.contents.at(name);
}

Task<> FakeHypervisor::FetchVolume(std::string name, ImageOrigin origin, Duration) {
  ++fetches;
  NewVolume volume{.name = name, .capacity = 3 * kGibibyte};
  co_await CreateVolume(std::move(volume));
  co_await loop_.SleepFor(copy_time);
  if (fails_transfers) throw Error(Verdict::kRetry, "the server does not answer");
  if (origin.checksum != checksum) throw Error(Verdict::kInvalid, "it has another checksum");
  contents[name] = origin.url;
}

Task<std::string> FakeHypervisor::ReadVolumeEnd(std::string name, std::uint64_t most) {
  co_await Call();
  const std::string& bytes = contents[name];
  co_return bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), most));
}

Task<> FakeHypervisor::DeleteVolume(std::string name) {
  co_await Call();
  at_write(Loss::kBefore, "delete " + name);
  volumes.erase(name);
  at_write(Loss::kAfter, "delete " + name);
}

std::string FakeHypervisor::AddressOf(const std::string& mac) const {
  std::size_t number = host_->numbers.try_emplace(mac, host_->numbers.size()).first->second;
  return fmt::format("192.0.2.{}", (gives_one_address ? 0 : number) + 10);
}

Task<std::vector<KnownAddress>> FakeHypervisor::Leases(std::string) {
  ++lease_calls;
  co_await Call();
  std::vector<KnownAddress> leases = former_leases;
  for (const auto& [mac, started] : started_) {
    if (loop_.SteadyNow() < started + boot_time) continue;
    leases.push_back({mac, AddressOf(mac), false});
  }
  co_return leases;
}

Task<std::uint64_t> FakeHypervisor::LeaseRange(std::string) {
  co_await Call();
  co_return lease_range;
}

Task<std::vector<KnownAddress>> FakeHypervisor::Addresses(std::string uuid, AddressSource source) {
  co_await Call();
  auto known = addresses.find(source);
  if (source == AddressSource::kAgent && with_identity_.contains(uuid)) {
    std::string mac = MacAddressesIn(domains.at(uuid)).front();
    co_return std::vector<KnownAddress>{{mac, "fe80::1", true}, {mac, AddressOf(mac), false}};
  }
  if (known == addresses.end()) throw Error(Verdict::kRetry, "QEMU guest agent is not connected");
  std::vector<KnownAddress> found;
  for (const std::string& mac : MacAddressesIn(domains.at(uuid))) {
    found.push_back({mac, "127.0.0.1", false});
    found.push_back({mac, known->second, known->second.find(':') != std::string::npos});
  }
  co_return found;
}

Task<> FakeHypervisor::Stop() { co_return; }

}  // namespace nodepool::drivers::libvirt::testing
