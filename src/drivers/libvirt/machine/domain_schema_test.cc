// The descriptions of machines of many labels, against libvirt's schema and against what no machine may have.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>

#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {
namespace {

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
