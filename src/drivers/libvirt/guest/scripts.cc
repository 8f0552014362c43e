#include "drivers/libvirt/guest/scripts.h"

#include <fmt/format.h>

#include "base/encoding.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
