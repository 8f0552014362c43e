#include "drivers/libvirt/xml/xml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>

#include "base/error.h"
#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {

namespace {

using ::testing::ElementsAre;

NewDomain Small() {
  NewDomain domain;
  domain.name = "np0000000042-0a1b2c3d";
  domain.uuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
  domain.metadata = {{"nodepool_node_id", "0000000042"}, {"label", "a<b>&\"c\""}};
  domain.vcpus = 2;
  domain.memory = 512;
  domain.root_path = "/pool/root";
  domain.image = {"/pool/debian.qcow2", "qcow2"};
  domain.seed_paths = {"/pool/nocloud", "/pool/config-drive"};
  domain.console_path = "/pool/console";
  domain.mac = "52:54:00:0a:1b:2c";
  domain.network.name = "default";
  domain.security_filter = "clean-traffic";
  return domain;
}

class DomainXmlTest : public ::testing::Test {
 protected:
  pugi::xml_node Document(const NewDomain& domain) {
    document_.load_string(DomainXml(domain).c_str());
    return document_.child("domain");
  }
  std::string At(const NewDomain& domain, const char* path) {
    return Document(domain).select_node(path).attribute().value();
  }
  pugi::xml_document document_;
};

// LV-6
TEST_F(DomainXmlTest, ComesBackWithItsMetadata) {
  DomainInfo domain = ParseDomain(DomainXml(Small()));
  EXPECT_EQ(domain.uuid, Small().uuid);
  EXPECT_EQ(domain.name, Small().name);
  EXPECT_EQ(domain.metadata, Small().metadata);
  EXPECT_EQ(domain.vcpus, 2);
  EXPECT_EQ(domain.memory, 512);
  EXPECT_THAT(MacAddressesIn(DomainXml(Small())), ElementsAre("52:54:00:0a:1b:2c"));
}

TEST_F(DomainXmlTest, ForeignDomainsHaveNoMetadataOfOurs) {
  DomainInfo domain = ParseDomain(
      "<domain><name>x</name><uuid>u</uuid><metadata><a:machine xmlns:a='urn:other'><a:property "
      "name='nodepool_node_id'>1</a:property></a:machine></metadata><memory>2097152</memory><vcpu>4</vcpu></"
      "domain>");
  EXPECT_TRUE(domain.metadata.empty());
  EXPECT_EQ(domain.memory, 2048);
  EXPECT_EQ(domain.vcpus, 4);
}

// LV-36
TEST_F(DomainXmlTest, OnlyTheCloneCanBeWrittenAndEveryFormatIsNamed) {
  NewDomain small = Small();
  auto disks = Document(small).select_nodes("devices/disk");
  ASSERT_EQ(disks.size(), 3u);
  for (const pugi::xpath_node& disk : disks) {
    std::string file = disk.node().child("source").attribute("file").value();
    EXPECT_EQ(bool(disk.node().child("readonly")), file != "/pool/root") << file;
    EXPECT_STRNE(disk.node().child("driver").attribute("type").value(), "") << file;
    EXPECT_TRUE(disk.node().child("backingStore")) << file << ": the chain has an end";
  }
  pugi::xml_node backing = document_.child("domain").child("devices").child("disk").child("backingStore");
  EXPECT_STREQ(backing.child("format").attribute("type").value(), "qcow2");
  EXPECT_STREQ(backing.child("source").attribute("file").value(), "/pool/debian.qcow2");
  EXPECT_TRUE(backing.child("backingStore"));
  for (const char* element : {"filesystem", "hostdev", "redirdev", "shmem", "graphics", "sound"}) {
    EXPECT_FALSE(document_.child("domain").child("devices").child(element)) << element;
  }
}

TEST_F(DomainXmlTest, WithAndWithoutKvm) {
  NewDomain domain = Small();
  EXPECT_EQ(At(domain, "@type"), "qemu");
  EXPECT_EQ(At(domain, "cpu/@mode"), "maximum");
  domain.uses_kvm = true;
  EXPECT_EQ(At(domain, "@type"), "kvm");
  EXPECT_EQ(At(domain, "cpu/@mode"), "host-passthrough");
  domain.cpu = "Skylake-Server";
  EXPECT_EQ(At(domain, "cpu/@mode"), "custom");
  EXPECT_STREQ(Document(domain).child("cpu").child_value("model"), "Skylake-Server");
}

TEST_F(DomainXmlTest, AKernelOfTheHostIsStartedInPlaceOfTheBootLoader) {
  NewDomain domain = Small();
  domain.kernel = DirectKernel{"/boot/vmlinuz", "", "root=/dev/vda1 console=ttyS0"};
  pugi::xml_node os = Document(domain).child("os");
  EXPECT_STREQ(os.child_value("kernel"), "/boot/vmlinuz");
  EXPECT_STREQ(os.child_value("cmdline"), "root=/dev/vda1 console=ttyS0");
  EXPECT_FALSE(os.child("initrd"));
  EXPECT_FALSE(Document(Small()).child("os").child("kernel"));
}

// LV-39
TEST_F(DomainXmlTest, TheFilterIsOnTheInterface) {
  NewDomain domain = Small();
  EXPECT_EQ(At(domain, "devices/interface/filterref/@filter"), "clean-traffic");
  domain.security_filter = std::nullopt;
  EXPECT_FALSE(Document(domain).child("devices").child("interface").child("filterref"));
}

// LV-12
TEST_F(DomainXmlTest, AnInterfaceMayBeOnABridge) {
  NewDomain domain = Small();
  domain.network = {MachineNetwork::Kind::kBridge, "br0"};
  EXPECT_EQ(At(domain, "devices/interface/@type"), "bridge");
  EXPECT_EQ(At(domain, "devices/interface/source/@bridge"), "br0");
}

// driver-libvirt.md 9.1
TEST_F(DomainXmlTest, FurtherInterfacesAreInLibvirtNetworks) {
  NewDomain domain = Small();
  domain.more_interfaces = {{"52:54:01:0a:1b:2c", "storage"}};
  EXPECT_EQ(At(domain, "devices/interface[2]/source/@network"), "storage");
  EXPECT_EQ(At(domain, "devices/interface[2]/mac/@address"), "52:54:01:0a:1b:2c");
}

// LV-11
TEST_F(DomainXmlTest, AForwardedPortIsAskedOfQemu) {
  NewDomain domain = Small();
  domain.network = {MachineNetwork::Kind::kUser, ""};
  domain.forwarded = ForwardedPort{"127.0.0.1", 22001, 22};
  EXPECT_FALSE(Document(domain).child("devices").child("interface"));
  pugi::xml_node command = document_.child("domain").child("qemu:commandline");
  std::vector<std::string> words;
  for (pugi::xml_node word : command.children()) words.emplace_back(word.attribute("value").value());
  EXPECT_THAT(words,
              ElementsAre("-netdev", "user,id=nodepool,hostfwd=tcp:127.0.0.1:22001-:22", "-device",
                          "virtio-net-pci,netdev=nodepool,mac=52:54:00:0a:1b:2c,bus=pcie.0,addr=0x10"));
  EXPECT_STRNE(document_.child("domain").attribute("xmlns:qemu").value(), "");
}

// driver-libvirt.md 7.3
TEST_F(DomainXmlTest, UefiHasItsVariablesInAFile) {
  NewDomain domain = Small();
  EXPECT_FALSE(Document(domain).child("os").attribute("firmware"));
  domain.variables_path = "/pool/np.here.node.1.0a1b2c3d.variables";
  domain.platform.firmware = Firmware::kUefi;
  EXPECT_EQ(At(domain, "os/@firmware"), "efi");
  EXPECT_EQ(At(domain, "os/firmware/feature/@name"), "secure-boot");
  EXPECT_EQ(At(domain, "os/firmware/feature/@enabled"), "no");
  EXPECT_EQ(Document(domain).child("os").child_value("nvram"), domain.variables_path);
  domain.platform.firmware = Firmware::kUefiSecure;
  EXPECT_EQ(At(domain, "os/firmware/feature/@enabled"), "yes");
}

TEST_F(DomainXmlTest, OtherBusesNameTheirDisksDifferently) {
  NewDomain domain = Small();
  domain.disk_bus = "scsi";
  EXPECT_EQ(At(domain, "devices/disk[3]/target/@dev"), "sdc");
  EXPECT_EQ(At(domain, "devices/controller/@model"), "virtio-scsi");
}

TEST(VolumeXml, ComesBack) {
  NewVolume volume{"np.here.node.1.0a1b2c3d.root", "qcow2", 1 << 20, DiskFile{"/pool/a&b", "raw"}, true};
  VolumeInfo info = ParseVolume(VolumeXml(volume));
  EXPECT_EQ(info.name, volume.name);
  EXPECT_EQ(info.format, "qcow2");
  EXPECT_EQ(info.capacity, 1u << 20);
  EXPECT_EQ(info.backing_path, "/pool/a&b");
  EXPECT_THAT(VolumeXml(volume), ::testing::HasSubstr("<mode>0600</mode>"));
}

TEST(Xml, WhatIsNoneIsAnErrorThatQuotesIt) {
  for (const char* text : {"", "<domain>", "no XML", "<volume></volume>", "<domain></domain>"}) {
    EXPECT_THROW(ParseDomain(text), Error) << text;
    EXPECT_THROW(ParseVolume(text), Error) << text;
  }
}

TEST(PlaceXml, ANetworkGivesItsFirstAddressToTheHostAndTheOthersToMachines) {
  pugi::xml_document document;
  NewNetwork network{"jobs", boost::asio::ip::make_network_v4("10.1.2.0/25"), false};
  document.load_string(NetworkXml(network).c_str());
  pugi::xml_node root = document.child("network");
  EXPECT_STREQ(root.child_value("name"), "jobs");
  EXPECT_STREQ(root.child("forward").attribute("mode").value(), "nat");
  EXPECT_FALSE(root.child("bridge").attribute("name")) << "libvirt finds a free one";
  EXPECT_FALSE(root.child("port"));
  pugi::xml_node ip = root.child("ip");
  EXPECT_STREQ(ip.attribute("address").value(), "10.1.2.1");
  EXPECT_STREQ(ip.attribute("netmask").value(), "255.255.255.128");
  pugi::xml_node range = ip.child("dhcp").child("range");
  EXPECT_STREQ(range.attribute("start").value(), "10.1.2.2");
  EXPECT_STREQ(range.attribute("end").value(), "10.1.2.126");
  EXPECT_STREQ(range.child("lease").attribute("expiry").value(), "10");
  pugi::xml_node option = root.child("dnsmasq:options").child("dnsmasq:option");
  EXPECT_STREQ(option.attribute("value").value(), "no-ping") << "which takes three seconds";
  network.is_isolated = true;
  document.load_string(NetworkXml(network).c_str());
  EXPECT_STREQ(document.child("network").child("port").attribute("isolated").value(), "yes");
}

TEST(PlaceXml, ANetworksRangesAreCounted) {
  EXPECT_EQ(LeaseRangeIn(NetworkXml({"jobs", boost::asio::ip::make_network_v4("10.1.2.0/25"), false})), 125u);
  EXPECT_EQ(LeaseRangeIn(
                "<network><ip family='ipv6'><dhcp><range start='fd00::1' end='fd00::9'/></dhcp></ip>"
                "<ip><dhcp><range start='10.0.0.1' end='10.0.0.3'/><range start='10.0.0.9' end='10.0.0.8'/>"
                "<range start='10.0.1.1' end='10.0.1.1'/></dhcp></ip></network>"),
            4u);
  EXPECT_EQ(LeaseRangeIn("<network><name>n</name></network>"), 0u);
  EXPECT_THROW(LeaseRangeIn("no XML"), Error);
}

TEST(PlaceXml, APoolIsAFolder) {
  pugi::xml_document document;
  document.load_string(PoolXml("jobs", "/srv/a & b").c_str());
  EXPECT_STREQ(document.child("pool").attribute("type").value(), "dir");
  EXPECT_STREQ(document.child("pool").child_value("name"), "jobs");
  EXPECT_STREQ(document.child("pool").child("target").child_value("path"), "/srv/a & b");
}

TEST(PlaceXml, APoolOnANetworkNamesItsServer) {
  EXPECT_EQ(
      SharedStorageIn("<pool type='netfs'><source><host name='nfs'/><dir path='/jobs'/></source></pool>"),
      "netfs nfs:/jobs");
  EXPECT_EQ(SharedStorageIn(PoolXml("jobs", "/srv/jobs")), "");
  EXPECT_THROW(SharedStorageIn("no XML"), Error);
}

constexpr std::size_t kHeader = 92;

std::string File(const std::string& magic, std::uint32_t version, const std::string& description,
                 std::uint32_t cookie) {
  std::uint32_t numbers[19] = {version, static_cast<std::uint32_t>(description.size()), 1, 0, cookie};
  return magic + std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)) + description +
         "memory";
}

std::string Room(const std::string& text, std::size_t size) {
  return text + std::string(size - text.size(), '\0');
}

// LV-47
TEST(SavedMemoryTest, ReadsAndReplacesTheDescriptionWithinItsRoom) {
  std::string file = File("LibvirtQemudSave", 2, Room("<old/>", 20) + "cookie", 20);
  EXPECT_EQ(DescriptionIn(file), "<old/>");
  std::string start = WithDescription(file, "<longer/>");
  EXPECT_EQ(start.size(), kHeader + 20);
  EXPECT_EQ(start.substr(0, kHeader), file.substr(0, kHeader));
  EXPECT_EQ(DescriptionIn(start + file.substr(start.size())), "<longer/>");
  EXPECT_THROW(WithDescription(file, std::string(20, 'x')), Error) << "without a place for its end";
}

// LV-47
TEST(SavedMemoryTest, WithoutACookieTheWholeRoomIsTheDescriptions) {
  EXPECT_EQ(DescriptionIn(File("LibvirtQemudSave", 2, Room("<old/>", 20), 0)), "<old/>");
}

// LV-49
TEST(SavedMemoryTest, AFileThatIsNotCompleteHasNone) {
  EXPECT_EQ(DescriptionIn(""), std::nullopt);
  EXPECT_EQ(DescriptionIn(File("LibvirtQemudPart", 2, "<old/>", 0)), std::nullopt);
}

// LV-49
TEST(SavedMemoryTest, OtherFilesAreRefused) {
  EXPECT_THROW(DescriptionIn(File("SomethingElse...", 2, "<old/>", 0)), Error);
  EXPECT_THROW(DescriptionIn(File("LibvirtQemudSave", 3, "<old/>", 0)), Error);
  EXPECT_THROW(DescriptionIn(File("LibvirtQemudSave", 2, "<old/>", 7)), Error);
  std::string damaged = File("LibvirtQemudSave", 2, "<old/>", 0);
  damaged[20] = '\x7f';
  damaged[23] = '\x7f';
  EXPECT_THROW(DescriptionIn(damaged), Error);
}

// The descriptions of machines of many labels, against libvirt's schema and against what no machine may have.

using driver::testing::Recorder;

// One change of the usual label, and of the host.
struct Variant {
  const char* name;  // of the test
  std::function<void(LibvirtLabel&)> change;
  bool offers_kvm = false;
  const char* architecture = "x86_64";  // of the host
};

std::vector<Variant> Variants() {
  MachineNetwork bridge{MachineNetwork::Kind::kBridge, "br0"}, user{MachineNetwork::Kind::kUser, ""};
  return {
      {"usual", [](LibvirtLabel&) {}},
      {"kvm", [](LibvirtLabel&) {}, true},
      {"cpu", [](LibvirtLabel& label) { label.cpu = "Skylake-Server"; }, true},
      {"host_model", [](LibvirtLabel& label) { label.cpu = "host_model"; }, true},
      {"pc", [](LibvirtLabel& label) { label.machine = "pc"; }},
      {"uefi", [](LibvirtLabel& label) { label.firmware = Firmware::kUefi; }},
      {"uefi_secure", [](LibvirtLabel& label) { label.firmware = Firmware::kUefiSecure; }},
      {"scsi", [](LibvirtLabel& label) { label.disk_bus = "scsi"; }},
      {"sata", [](LibvirtLabel& label) { label.disk_bus = "sata"; }},
      {"no_seed", [](LibvirtLabel& label) { label.seeds.clear(); }},
      {"filter", [](LibvirtLabel& label) { label.security_filter = "clean-traffic"; }},
      {"networks",
       [](LibvirtLabel& label) {
         label.more_networks = {"storage", "tests"};
       }},
      {"bridge", [bridge](LibvirtLabel& label) { label.network = bridge; }},
      {"user", [user](LibvirtLabel& label) { label.network = user; }},
      {"user_pc",
       [user](LibvirtLabel& label) {
         label.network = user;
         label.machine = "pc";
       }},
      {"kernel",
       [](LibvirtLabel& label) {
         label.kernel = DirectKernel{"/k", "/i", "console=ttyS0"};
       }},
      {"warm_start", [](LibvirtLabel& label) { label.is_started_warm = true; }},
      {"arm64", [](LibvirtLabel&) {}, true, "aarch64"},
      {"arm64_user", [user](LibvirtLabel& label) { label.network = user; }, false, "aarch64"},
  };
}

class DomainSchemaTest : public MachineTest, public ::testing::WithParamInterface<Variant> {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    GetParam().change(*label);
    prepare = [](testing::FakeHypervisor& host) {
      host.size.offers_kvm = GetParam().offers_kvm;
      host.size.architecture = GetParam().architecture;
      host.addresses = {{AddressSource::kAgent, "192.0.2.7"}};
    };
    Start();
    Recorder machine;
    Create(machine);
    xml = Fake().domains.begin()->second;
    document.load_string(xml.c_str());
    root = document.child("domain");
  }

  std::string xml;  // that the host was given to start
  pugi::xml_document document;
  pugi::xml_node root;
};

// LV-36
TEST_P(DomainSchemaTest, TheDescriptionKeepsToLibvirtsSchema) {
  std::string path = fmt::format("{}domain-{}.xml", ::testing::TempDir(), GetParam().name);
  std::ofstream(path) << xml;
  std::string command = fmt::format("virt-xml-validate {} domain >{}.faults 2>&1", path, path);
  EXPECT_EQ(std::system(command.c_str()), 0) << std::ifstream(path + ".faults").rdbuf() << xml;
  for (const std::string& file : {path, path + ".faults"}) std::filesystem::remove(file);
}

// LV-36
TEST_P(DomainSchemaTest, AMachineCanWriteToNothingOfItsHostButItsClone) {
  std::vector<std::string> writable;
  for (pugi::xml_node disk : root.child("devices").children("disk")) {
    std::string file = disk.child("source").attribute("file").value();
    if (!disk.child("readonly")) writable.push_back(file);
    EXPECT_STRNE(disk.child("driver").attribute("type").value(), "") << file;
    pugi::xml_node backing = disk.child("backingStore");
    // libvirt finds the chain of a machine from saved memory in the headers that it has written itself.
    if (!backing && label->is_started_warm) continue;
    for (; backing.first_child(); backing = backing.child("backingStore")) {
      EXPECT_STRNE(backing.child("format").attribute("type").value(), "") << file;
    }
    EXPECT_TRUE(backing) << file << ": the chain has an end";
  }
  EXPECT_THAT(writable, ::testing::ElementsAre(::testing::EndsWith(".root")));
  for (const char* element : {"filesystem", "hostdev", "redirdev", "shmem", "tpm", "graphics", "sound"}) {
    EXPECT_FALSE(root.child("devices").child(element)) << element;
  }
}

// LV-68
TEST_P(DomainSchemaTest, OnlyAPcHasItsDevices) {
  bool is_pc = std::string_view(GetParam().architecture) == "x86_64";
  EXPECT_STREQ(root.child("os").child("type").attribute("arch").value(), GetParam().architecture);
  EXPECT_EQ(bool(root.child("features").child("apic")), is_pc);
  EXPECT_EQ(bool(root.child("clock").child("timer")), is_pc);
}

INSTANTIATE_TEST_SUITE_P(Labels, DomainSchemaTest, ::testing::ValuesIn(Variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace

}  // namespace nodepool::drivers::libvirt
