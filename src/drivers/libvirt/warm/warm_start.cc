#include "drivers/libvirt/warm/warm_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/machine/boot.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

namespace json = boost::json;

namespace {

constexpr Duration kAgentPause = std::chrono::milliseconds(30);

json::value AnswerIn(const std::string& text) {
  boost::system::error_code fault;
  json::value answer = json::parse(text, fault);
  const json::value* value =
      !fault && answer.is_object() ? answer.as_object().if_contains("return") : nullptr;
  if (value == nullptr) {
    throw Error(Verdict::kFail, "the guest agent's answer is not understood: " + Excerpt(text, 200));
  }
  return *value;
}

json::object FieldsOf(const json::value& answer) {
  return answer.is_object() ? answer.as_object() : json::object();
}

std::int64_t NumberIn(const json::object& answer, const char* key) {
  const json::value* value = answer.if_contains(key);
  return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}

std::string BytesIn(const json::object& answer, const char* key) {
  const json::value* value = answer.if_contains(key);
  if (value == nullptr || !value->is_string()) return "";
  return FromBase64(std::string_view(value->as_string())).value_or("");
}

// The agent that is there after a while answers; one that is not there is asked again.
Task<json::value> Ask(Loop& loop, Hypervisor& host, const std::string& uuid, json::object command) {
  while (true) {
    Outcome<std::string> answer = co_await Attempt(host.AskAgent(uuid, json::serialize(command)));
    if (answer) co_return AnswerIn(*answer);
    if (!FailedWith(answer, Verdict::kRetry)) answer.error().Rethrow();
    co_await loop.SleepFor(kAgentPause);
  }
}

Task<GuestResult> Run(Loop& loop, Hypervisor& host, std::string uuid, std::string script) {
  json::object execution = {{"path", "/bin/sh"}, {"arg", {"-c", script}}, {"capture-output", true}};
  json::object start = {{"execute", "guest-exec"}, {"arguments", std::move(execution)}};
  json::value started = co_await Ask(loop, host, uuid, std::move(start));
  std::int64_t pid = NumberIn(FieldsOf(started), "pid");
  json::object query = {{"execute", "guest-exec-status"}, {"arguments", {{"pid", pid}}}};
  while (true) {
    json::value answer = co_await Ask(loop, host, uuid, query);
    json::object status = FieldsOf(answer);
    const json::value* exited = status.if_contains("exited");
    if (exited != nullptr && exited->is_bool() && exited->as_bool()) {
      co_return GuestResult{static_cast<int>(NumberIn(status, "exitcode")),
                            BytesIn(status, "out-data") + BytesIn(status, "err-data")};
    }
    co_await loop.SleepFor(kAgentPause);
  }
}

Task<> Write(Loop& loop, Hypervisor& host, std::string uuid, std::string path, std::string bytes) {
  json::object open = {{"execute", "guest-file-open"}, {"arguments", {{"path", path}, {"mode", "w"}}}};
  json::value handle = co_await Ask(loop, host, uuid, std::move(open));
  json::object content = {{"handle", handle}, {"buf-b64", Base64(bytes)}};
  json::object write = {{"execute", "guest-file-write"}, {"arguments", std::move(content)}};
  co_await Ask(loop, host, uuid, std::move(write));
  json::object close = {{"execute", "guest-file-close"}, {"arguments", {{"handle", handle}}}};
  co_await Ask(loop, host, uuid, std::move(close));
}

}  // namespace

Task<> WriteInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string path, std::string bytes,
                    Duration limit) {
  SteadyTime deadline = loop.SteadyNow() + limit;
  return WithDeadline(loop, deadline, "writing to the guest",
                      Write(loop, host, std::move(uuid), std::move(path), std::move(bytes)));
}

Task<GuestResult> RunInGuest(Loop& loop, Hypervisor& host, std::string uuid, std::string script,
                             Duration limit) {
  SteadyTime deadline = loop.SteadyNow() + limit;
  return WithDeadline(loop, deadline, "a script in the guest",
                      Run(loop, host, std::move(uuid), std::move(script)));
}

namespace {

// $sockets: the inodes of the sockets that listen on $port, without a program more than the shell.
constexpr const char* kSockets = R"sh(
find_sockets() {
  sockets=
  for table in /proc/net/tcp /proc/net/tcp6; do
    [ -r $table ] || continue
    while read -r _ local _ state _ _ _ _ _ inode _; do
      if [ "${local##*:}" = "$port" ] && [ "$state" = 0A ]; then sockets="$sockets $inode"; fi
    done <$table
  done
}
)sh";

constexpr const char* kNetwork = R"sh(
find_devices() {
  devices=
  for link in /sys/class/net/*; do
    if [ -e "$link/device" ]; then devices="$devices ${link##*/}"; fi
  done
}
manager() {
  if [ -x /etc/nodepool/network ]; then echo own; return; fi
  for service in NetworkManager systemd-networkd; do
    if systemctl -q is-active $service.service 2>/dev/null; then echo $service; return; fi
  done
  if command -v ifup >/dev/null; then echo ifupdown; fi
}
stop_network() {
  case $1 in
    own) /etc/nodepool/network stop ;;
    NetworkManager) nmcli networking off ;;
    systemd-networkd) systemctl stop systemd-networkd.socket systemd-networkd.service ;;
    ifupdown) ifdown -a; ifdown -a --allow=hotplug; rm -f /var/lib/dhcp/*.leases ;;
  esac
  find_devices
  for device in $devices; do ip addr flush dev $device; ip link set dev $device down; done
}
start_network() {
  case $1 in
    own) /etc/nodepool/network start ;;
    NetworkManager) nmcli networking on ;;
    systemd-networkd) systemctl start systemd-networkd.service ;;
    ifupdown) ifup -a; ifup -a --allow=hotplug ;;
  esac
}
)sh";

// Without this all machines from one memory would draw the same random numbers: RNDADDENTROPY mixes bytes in,
// RNDRESEEDCRNG makes the kernel use them at once. The program waits for the bytes at a pipe when the memory
// is saved, since its start would take longer than all else.
constexpr const char* kRandom = R"sh(
pipe=/run/nodepool/random
await_random() {
  if command -v perl >/dev/null; then
    exec perl -e '
      my $pipe = shift;
      sub answer { open(my $out, ">", $pipe) or die "$!\n"; print $out @_; close($out); }
      open(my $random, ">", "/dev/random") or die "$!\n";
      answer("waiting\n");
      open(my $in, "<", $pipe) or die "$!\n";
      my $bytes = pack("H*", <$in> =~ s/\s//gr);
      close($in);
      eval {
        ioctl($random, 0x40085203, pack("ii", 8 * length $bytes, length $bytes) . $bytes) or die "$!\n";
        ioctl($random, 0x5207, 0) or die "$!\n";
      };
      answer($@ || "renewed\n");' $pipe
  else
    exec python3 -c '
import fcntl, struct, sys
def answer(text):
    with open(sys.argv[1], "w") as out:
        print(text, file=out)
with open("/dev/random", "wb") as random:
    answer("waiting")
    with open(sys.argv[1]) as source:
        data = bytes.fromhex(source.read())
    try:
        fcntl.ioctl(random, 0x40085203, struct.pack("ii", 8 * len(data), len(data)) + data)
        fcntl.ioctl(random, 0x5207)
    except OSError as fault:
        answer(fault)
    else:
        answer("renewed")' $pipe
  fi
}
random_answers() {
  read -r answer <$pipe
  if [ "$answer" != "$1" ]; then echo "renewing random numbers: $answer"; exit 1; fi
}
)sh";

constexpr const char* kPrepare = R"sh(
if ! command -v perl >/dev/null && ! command -v python3 >/dev/null; then
  echo "the guest has neither perl nor python3 to renew its kernel's random numbers"
  exit 1
fi
manager=$(manager)
if [ -z "$manager" ]; then
  echo "it is not known how the guest's network is stopped; an executable /etc/nodepool/network can do it"
  exit 1
fi
mkdir -p /run/nodepool
echo "$manager" >/run/nodepool/network
stop_network "$manager" >/run/nodepool/log 2>&1
rm -f /etc/ssh/ssh_host_*
mkfifo -m 600 $pipe /run/nodepool/identity
await_random </dev/null >>/run/nodepool/log 2>&1 &
random_answers waiting
sh /run/nodepool/identity </dev/null >>/run/nodepool/log 2>&1 &
sync
)sh";

// Each program that it starts takes much longer than what the shell does itself.
constexpr const char* kIdentity = R"sh(
set -e
echo "$random" >$pipe
random_answers renewed
date -u -s "@$now" >/dev/null

old=
if [ -f /etc/hostname ]; then read -r old </etc/hostname || true; fi
echo "$name" >/proc/sys/kernel/hostname
echo "$name" >/etc/hostname
if [ -n "$old" ]; then
  while read -r line; do
    case $line in *"$old"*) sed -i "s/$old/$name/g" /etc/hosts; break ;; esac
  done </etc/hosts
fi
for file in /etc/machine-id /var/lib/dbus/machine-id; do
  if [ -f $file ] && ! [ -L $file ]; then echo "$machine_id" >$file; fi
done

key=/etc/ssh/ssh_host_ed25519_key
umask 077
printf %s "$host_key" >$key
umask 022
echo "$public_host_key" >$key.pub
before=
if [ -e /run/sshd.pid ]; then
  find_sockets
  before=$sockets
  read -r sshd </run/sshd.pid
  kill -HUP "$sshd"
else
  systemctl try-restart ssh.service sshd.service
fi
find_devices
set -- $devices
ip link set dev "$1" address "$mac" up
while find_sockets; [ -n "$before" ] && [ "$sockets" = "$before" ]; do sleep 0.02; done
read -r manager </run/nodepool/network
start_network "$manager"
exit 0
)sh";

// A variable of the script; whatever the value is, the shell does not interpret it.
std::string Set(const char* name, std::string_view value) {
  std::string quoted;
  for (char c : value) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fmt::format("{}='{}'\n", name, quoted);
}

std::string Port(int port) { return Set("port", fmt::format("{:04X}", port)); }

}  // namespace

std::string HasBootedScript(int ssh_port) {
  return Port(ssh_port) + kSockets + R"sh(
find_sockets
[ -n "$sockets" ] || exit 1
if [ -e /run/cloud-init/enabled ] && ! [ -e /run/cloud-init/result.json ]; then exit 1; fi
[ -d /run/systemd/system ] || exit 0
case $(systemctl is-system-running) in running | degraded) exit 0 ;; esac
exit 1
)sh";
}

std::string PrepareScript() { return std::string(kNetwork) + kRandom + kPrepare; }

std::string IdentityScript(const Identity& identity, std::chrono::system_clock::time_point now) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  return Port(identity.ssh_port) + Set("name", identity.hostname) + Set("machine_id", identity.machine_id) +
         Set("mac", identity.mac) + Set("host_key", identity.host_key) +
         Set("public_host_key", identity.public_host_key) + Set("random", Hex(identity.random)) +
         Set("now", std::to_string(seconds)) + kSockets + kNetwork + kRandom + kIdentity;
}

namespace {

constexpr Duration kPauseAfterFault = std::chrono::minutes(10);
constexpr Duration kIdentityLimit = std::chrono::seconds(120);
constexpr Duration kAddressPause = std::chrono::milliseconds(30);
constexpr Duration kLogLimit = std::chrono::seconds(10);
constexpr int kRandomNumbers = 8;

struct Template {
  MachineId id;
  std::string memory;  // the name of its volume
  DiskFile root;
  std::uint64_t capacity = 0;  // of root
  std::string memory_start;    // of the volume's content
};

std::string TemplateVolume(const Creation& creation, const MachineId& id, const char* part) {
  return NameOf(MachineVolume{creation.site.config->name.str(), kWarmStart, id.digits(), part});
}

// nullopt: the host has no complete one.
Task<std::optional<Template>> FindTemplate(Creation& creation, const MachineId& id) {
  Hypervisor& host = creation.host.Use();
  Template found{.id = id, .memory = TemplateVolume(creation, id, kMemoryPart)};
  Task<std::string> read = host.ReadVolumeStart(found.memory, kMostOfSavedMemory);
  Outcome<std::string> start = co_await Attempt(std::move(read));
  if (FailedWith(start, Verdict::kNotFound)) co_return std::nullopt;
  if (!start) start.error().Rethrow();
  if (!DescriptionIn(*start)) co_return std::nullopt;
  VolumeInfo root = co_await host.Volume(TemplateVolume(creation, id, kRootPart));
  found.root = {root.path, "qcow2"};
  found.capacity = root.capacity;
  found.memory_start = std::move(*start);
  co_return found;
}

Task<> CheckNobodyMakes(Creation& creation, const MachineId& id) {
  std::vector<DomainInfo> domains = co_await creation.host.Domains();
  auto running = std::ranges::find(domains, id.uuid, &DomainInfo::uuid);
  if (running == domains.end()) co_return;
  WallTime since = FromSeconds(static_cast<double>(MakingSince(*running)));
  if (creation.site.environment.loop.Now() - since < kMostOfMaking) {
    throw Error(Verdict::kRetry, "another process makes the saved memory");
  }
}

Task<Template> FindOrMake(Creation& creation, const MachineId& id) {
  std::optional<Template> found = co_await FindTemplate(creation, id);
  if (found) co_return std::move(*found);
  co_await CheckNobodyMakes(creation, id);
  co_await MakeTemplate(creation, id);
  found = co_await FindTemplate(creation, id);
  if (!found) throw Error(Verdict::kFail, "the file of saved memory is not complete");
  co_return std::move(*found);
}

// An earlier try may have started the machine although its answer was lost.
Task<> RestoreUnlessRunning(Creation& creation, Hypervisor& host, const Template& from, std::string start) {
  if (creation.host.IsListed(creation.id.uuid)) co_return;
  co_await host.WriteVolume(from.memory, std::move(start));
  creation.host.Watch(creation.id.uuid);
  co_await host.RestoreDomain(from.memory);
}

Task<> Restore(Creation& creation, const Template& from) {
  DomainDisks disks;
  disks.image = from.root;
  NewVolume root{creation.VolumeName(kRootPart), "qcow2", from.capacity, from.root};
  disks.root_path = co_await MakeVolume(creation, std::move(root));
  disks.console_path = co_await MakeConsole(creation);
  std::optional<std::string> saved = DescriptionIn(from.memory_start);
  if (!saved) throw Error(Verdict::kFail, "the memory to start from is not complete");
  std::string description = CloneXml(*saved, DescribeOnHost(creation, std::move(disks)));
  std::string start = WithDescription(from.memory_start, description);
  auto restore = [&](Hypervisor& host) { return RestoreUnlessRunning(creation, host, from, start); };
  co_await creation.Do(restore);
}

std::string RandomBytes(Random& random) {
  std::string bytes;
  for (int i = 0; i < kRandomNumbers; ++i) {
    std::uint64_t number = random.Next();
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return bytes;
}

Identity IdentityOf(Creation& creation, const SshKey& host_key) {
  std::string machine_id = creation.id.uuid;
  std::erase(machine_id, '-');
  return {.hostname = creation.parameters.hostname,
          .machine_id = std::move(machine_id),
          .mac = MacAddressOf(creation.id),
          .host_key = host_key.private_key,
          .public_host_key = host_key.public_key,
          .random = RandomBytes(creation.site.environment.random),
          .ssh_port = creation.label.connection.connection_port};
}

// The agent is there, so it is asked in place of the DHCP server, and often.
Task<std::string> AwaitAddress(Creation& creation) {
  const std::string mac = MacAddressOf(creation.id);
  auto ask = [&](Hypervisor& host) { return host.Addresses(creation.id.uuid, AddressSource::kAgent); };
  while (true) {
    if (creation.host.HasEnded(creation.id.uuid)) throw Error(Verdict::kFail, "the restored machine ended");
    Outcome<std::vector<KnownAddress>> known = co_await Attempt(creation.host.AcrossLosses(ask));
    std::string address = known ? AddressIn(*known, mac) : "";
    if (!address.empty()) {
      creation.host.addresses().Claim(creation.network(), address, creation.id.uuid);
      co_return address;
    }
    co_await creation.site.environment.loop.SleepFor(kAddressPause);
  }
}

Task<std::string> TakeIdentity(Creation& creation, Identity identity) {
  Loop& loop = creation.site.environment.loop;
  std::string script = IdentityScript(identity, loop.Now());
  auto write = [&](Hypervisor& host) {
    return WriteInGuest(loop, host, creation.id.uuid, kIdentityPipe, script, kIdentityLimit);
  };
  co_await creation.host.AcrossLosses(write);
  co_return co_await AwaitAddress(creation);
}

Task<std::string> IdentityLog(Creation& creation) {
  Outcome<GuestResult> log =
      co_await Attempt(RunInGuest(creation.site.environment.loop, creation.host.Use(), creation.id.uuid,
                                  std::string("tail -c 300 ") + kIdentityLog, kLogLimit));
  co_return log ? log->output : "its log cannot be read: " + log.error().message();
}

// Returns the machine's address.
Task<std::string> GiveIdentity(Creation& creation, const SshKey& host_key) {
  Loop& loop = creation.site.environment.loop;
  SteadyTime deadline = loop.SteadyNow() + kIdentityLimit;
  Task<std::string> taking = TakeIdentity(creation, IdentityOf(creation, host_key));
  Outcome<std::string> address = co_await Attempt(
      WithDeadline(loop, deadline, "giving the restored machine its identity", std::move(taking)));
  if (address) co_return std::move(*address);
  std::string log = co_await IdentityLog(creation);
  throw Error(Verdict::kFail, address.error().message() + ": " + Excerpt(log, 300));
}

// nullopt: the last fault was a moment ago.
Task<std::optional<std::string>> Start(Creation& creation, const MachineId& id, WarmTemplate& state,
                                       const SshKey& host_key) {
  {
    Gate::Pass pass = co_await state.gate.Enter();
    if (creation.site.environment.loop.SteadyNow() < state.retry_at) co_return std::nullopt;
    Template from = co_await FindOrMake(creation, id);
    co_await Restore(creation, from);
  }
  co_return co_await GiveIdentity(creation, host_key);
}

}  // namespace

Task<std::optional<std::string>> StartWarm(Creation& creation) {
  Site& site = creation.site;
  auto find = [&](Hypervisor& host) { return FindBootImage(host, *site.config, creation.parameters); };
  BootImage image = co_await creation.host.AcrossLosses(find);
  MachineId id = TemplateFor(creation, image);
  WarmTemplate& state = site.warm_templates[id.ToText()];
  SshKey host_key = MakeSshKey();
  Outcome<std::optional<std::string>> address = co_await Attempt(Start(creation, id, state, host_key));
  if (address) {
    if (*address) creation.host_key = std::move(host_key);
    co_return std::move(*address);
  }
  state.retry_at = site.environment.loop.SteadyNow() + kPauseAfterFault;
  site.logger.Warning(
      "Machines of label {} on host {} are booted for 10 minutes, since they cannot be started "
      "from saved memory: {}",
      creation.label.name, creation.host.name(), address.error().message());
  co_await RemoveMachine(site.hosts, site.config->name.str(), creation.id);
  co_return std::nullopt;
}

}  // namespace nodepool::drivers::libvirt
