#include "drivers/libvirt_schema.h"

#include "driver/cloud/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
using config::Schema;
using config::Setting;

namespace {

Schema Texts() { return Schema::List(Schema::String()); }

// A number, or a percentage: "150%".
Schema Share() { return Schema::OneOf({Schema::Int(), Schema::String()}); }

Setting AuthorizedKeys(const char* help) { return Setting("authorized-keys", Texts(), help); }

// What a host may have of its own and otherwise takes from the provider.
std::vector<Setting> HostDefaults() {
  return {
      Setting(
          "storage-pool", Schema::OneOf({Schema::String(), StoragePoolSchema()}),
          "The storage pool for images and machines: the name of one that exists, or the name and path of "
          "one that is made where there is none. Default: nodepool, made in "
          "/var/lib/libvirt/images/nodepool."),
      Setting(
          "network", Schema::OneOf({Schema::String(), NetworkSchema()}),
          "The network of the machines: the name of a libvirt network, the name and subnet of one that is "
          "made "
          "where there is none, a bridge, or QEMU's own. Default: default; of qemu:///session {user: true}."),
      Setting("accelerator", Schema::String(), "auto, kvm or tcg. auto: kvm where the host offers it."),
  };
}

Schema HostSchema() {
  Schema host = Schema::Map({
      Setting("name", Schema::String(), "Part of external ids: renaming a host orphans its nodes.")
          .Required(),
      Setting("uri", Schema::String(), "The libvirt connection, e.g. qemu+ssh://user@host/system.")
          .Required()
          .Secret(),
      Setting("address", Schema::String(),
              "Where its forwarded ports are reached; default: the URI's host, 127.0.0.1 for a local one."),
      Setting("cores", Share(), "CPUs that machines may have together, or a percentage of the host's.")
          .Default("100%"),
      Setting("memory", Share(),
              "Memory that machines may have together, or a percentage of the host's; default: all but the "
              "larger of 1024 MiB and 10%.")
          .Unit("MiB"),
      Setting("disk", Share(),
              "Sum of the disks' virtual sizes, or a percentage of the storage pool's capacity.")
          .Default("90%")
          .Unit("GiB"),
      Setting("instances", Schema::Int(), "Machines at a time; default: unlimited."),
      Setting("min-free-disk", Schema::Int(), "Nothing is created while the storage pool has less.")
          .Default(5)
          .Unit("GiB"),
      Setting("paused", Schema::Bool(), "No new machines here; those that run continue.").Default(false),
  });
  return host.With(HostDefaults());
}

Schema CloudImageSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "What labels call the image.").Required(),
      Setting("volume", Schema::String(), "A volume of the storage pool; default: the image's name."),
      Setting("path", Schema::String(), "A file on the host; it is never written or deleted."),
      Setting("url", Schema::String(),
              "Where the image is fetched from, once for each host; needs checksum."),
      Setting("checksum", Schema::String(), "sha256: or sha512: and the digits of the image's checksum."),
      Setting("format", Schema::String(),
              "qcow2 or raw; needed with path, default: as the volume says, with url qcow2."),
      Setting("kernel", Schema::String(), "A kernel of the host to start in place of the boot loader's."),
      Setting("initrd", Schema::String(), "The initrd beside the kernel."),
      Setting("kernel-args", Schema::String(), "The command line of the kernel."),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
  });
  return image.With(ConnectionTypeSettings()).Exclusive({"volume", "path", "url"});
}

// Settings of pools that are defaults for their labels.
std::vector<Setting> MachineSettings() {
  return {
      Setting(
          "network", Schema::OneOf({Schema::String(), LabelNetworkSchema(), Texts()}),
          "Another network than the host's: the name of a libvirt network, a bridge, or QEMU's own. Or names "
          "of several libvirt networks, an interface each; machines are reached in the first."),
      Setting("security-filter", Schema::OneOf({Schema::Bool(), Schema::String()}),
              "libvirt's network filter for the machines; false: none."),
      AuthorizedKeys("More public keys for the machines."),
      Setting("userdata", Schema::String(), "User data for cloud-init.").Secret(),
  };
}

Schema LabelSchema() {
  Schema label = cloud::LabelSchema().With({
      Setting("vcpus", Schema::Int(), "Virtual CPUs.").Default(1),
      Setting("memory", Schema::Int(), "Memory.").Default(1024).Unit("MiB"),
      Setting("disk", Schema::Int(), "Size of the disk; default: the image's virtual size.").Unit("GiB"),
      Setting("machine", Schema::String(), "QEMU's machine type; pc for old images.").Default("q35"),
      Setting("cpu", Schema::String(),
              "host-passthrough, host-model, maximum, or a model's name; default: host-passthrough with kvm, "
              "maximum without."),
      Setting("firmware", Schema::String(), "bios, uefi or uefi-secure; not bios with warm-start.")
          .Default("bios"),
      Setting("disk-bus", Schema::String(), "virtio, scsi or sata.").Default("virtio"),
      Setting("seed", Schema::String(),
              "How keys and user data reach the machine: nocloud, config-drive, both "
              "or none.")
          .Default("both"),
      Setting(
          "warm-start", Schema::Bool(),
          "Machines go on from the saved memory of one that has booted, each with an identity of its own.")
          .Default(false),
      Setting("host", Schema::String(), "Only this host."),
  });
  return label.With(MachineSettings()).RequireOneOf({"diskimage", "cloud-image"});
}

Schema PoolSchema() {
  return cloud::PoolSchema(LabelSchema())
      .With({Setting("hosts", Texts(), "Only these hosts; default: all.")})
      .With(MachineSettings());
}

Schema MakeSchema() {
  Schema provider = Schema::Map({
      Setting("uri", Schema::String(), "The libvirt connection of the only host.")
          .Default("qemu:///system")
          .Secret(),
      Setting("hosts", Schema::List(HostSchema()), "Hosts; default: one named local, at uri."),
      AuthorizedKeys("Public keys for every machine."),
      Setting(
          "key", Schema::OneOf({Schema::Bool(), Schema::String()}),
          "File with the private SSH key whose public half every machine gets; made where there is none. "
          "Default where there are no authorized-keys: libvirt/<provider> in the state-dir; false: none."),
      Setting(
          "host-keys", Schema::String(),
          "scan: the keys that a machine shows first are its keys; inject: each machine is given one, and "
          "has to show it, which needs cloud-init.")
          .Default("scan"),
      Setting("placement", Schema::String(),
              "spread: the host that is used least; pack: the one used most that has room.")
          .Default("spread"),
      Setting("same-host", Schema::OneOf({Schema::String(), Schema::Bool()}),
              "Whether the nodes of one request are made on one host: require, prefer or no. Default: no "
              "where they are "
              "on a bridge, else require, since machines on other networks reach only those of their host."),
      Setting("call-timeout", Schema::Int(),
              "Time for one call of libvirt; one that starts a machine has four times that.")
          .Default(30)
          .Unit("seconds"),
      Setting("boot-timeout", Schema::Int(),
              "Time for the host key scan of a new node; unless it is set, 300 seconds where machines run "
              "without KVM.")
          .Default(60)
          .Unit("seconds"),
      cloud::LaunchTimeout(600),
      cloud::LaunchRetries(),
      Setting("cloud-images", Schema::List(CloudImageSchema()), "Images that exist on the hosts."),
      Setting("diskimages", Schema::List(cloud::DiskImageSchema()), "Images of the builder to upload here."),
      Setting("image-format", Schema::String(), "Format of uploads: qcow2 or raw.").Default("qcow2"),
      Setting("pools", Schema::List(PoolSchema()), "Groups of nodes."),
  });
  return provider.With(HostDefaults()).With(cloud::UploadSettings()).Exclusive({"uri", "hosts"});
}

}  // namespace

const Schema& StoragePoolSchema() {
  static const Schema schema = Schema::Map({
      Setting("name", Schema::String(), "The storage pool.").Required(),
      Setting("path", Schema::String(), "The folder on the host in which it is made.").Required(),
  });
  return schema;
}

const Schema& LabelNetworkSchema() {
  static const Schema schema =
      Schema::Map(
          {
              Setting("bridge", Schema::String(),
                      "A bridge of the host; another DHCP server gives the addresses, which the guest "
                      "agent tells."),
              Setting("user", Schema::Bool(),
                      "true: QEMU's own network, which needs no rights; machines are reached at ports "
                      "22000 to 22999 of their host."),
          })
          .RequireOneOf({"bridge", "user"});
  return schema;
}

const Schema& NetworkSchema() {
  static const Schema schema =
      Schema::Map(
          {
              Setting("name", Schema::String(), "The libvirt network that is made; needs subnet."),
              Setting("subnet", Schema::String(),
                      "Its IPv4 addresses, e.g. 192.168.150.0/24: the first is the host's, machines "
                      "get the rest by DHCP."),
              Setting("isolated", Schema::Bool(), "Machines cannot reach each other.").Default(false),
              Setting("bridge", Schema::String(),
                      "A bridge of the host; another DHCP server gives the addresses, which the guest "
                      "agent tells."),
              Setting("user", Schema::Bool(),
                      "true: QEMU's own network, which needs no rights; machines are reached at ports "
                      "22000 to 22999 of their host."),
          })
          .RequireOneOf({"name", "bridge", "user"});
  return schema;
}

const Schema& LibvirtSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

}  // namespace nodepool::drivers
