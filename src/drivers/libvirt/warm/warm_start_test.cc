#include "drivers/libvirt/warm/warm_start.h"

#include "drivers/libvirt/machine/machine_fixture_for_test.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace {

using driver::cloud::Instance;
using driver::testing::Recorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class WarmStartTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    label->is_started_warm = true;
  }
  std::vector<std::string> TemplateVolumes() {
    std::vector<std::string> parts;
    for (const auto& [name, volume] : Fake().volumes) {
      std::optional<MachineVolume> ours = ParseMachineVolume(name);
      if (ours && ours->node == kWarmStart) parts.push_back(ours->part);
    }
    return parts;
  }
  DomainInfo Only() { return ParseDomain(Fake().domains.begin()->second); }
  void Pass(Duration duration) { time.Advance(duration); }
};

// LV-47
TEST_F(WarmStartTest, MachinesGoOnFromTheMemoryOfOneThatHasBooted) {
  Start();
  Recorder first, second;
  Create(first);
  EXPECT_THAT(TemplateVolumes(), ElementsAre("config-drive", "console", "memory", "nocloud", "root"));
  SteadyTime start = time.loop().SteadyNow();
  Create(second, "0000000043");
  EXPECT_LT(time.loop().SteadyNow() - start, Fake().boot_time);
  EXPECT_THAT(Fake().restored, SizeIs(2));
  EXPECT_THAT(Fake().domains, SizeIs(2)) << "the template does not run";
}

// LV-48
TEST_F(WarmStartTest, EachMachineHasAnIdentityOfItsOwn) {
  Start();
  Recorder machine;
  Instance instance = Create(machine);
  DomainInfo domain = Only();
  EXPECT_EQ(instance.external_id.as_string(), "a/" + domain.uuid);
  EXPECT_EQ(domain.name, instance.name);
  EXPECT_EQ(domain.metadata["nodepool_node_id"], "0000000042");
  const std::string& xml = Fake().domains.begin()->second;
  EXPECT_THAT(xml, HasSubstr("<genid>" + domain.uuid + "</genid>"));
  EXPECT_THAT(xml, HasSubstr(".0000000042." + domain.uuid.substr(0, 8) + ".root"));
  EXPECT_THAT(xml, HasSubstr(".0000000042." + domain.uuid.substr(0, 8) + ".console"));
  EXPECT_THAT(MacAddressesIn(xml),
              ElementsAre(MacAddressOf(*ParseMachineId(instance.external_id.as_string()))));
  ASSERT_TRUE(instance.host_keys);
  EXPECT_THAT(Fake().scripts.back(), HasSubstr("public_host_key='" + instance.host_keys->front() + "'"));
  EXPECT_THAT(Fake().scripts.back(), HasSubstr("name='np0000000042'"));
  EXPECT_THAT(Fake().scripts.back(), HasSubstr("mac='" + MacAddressesIn(xml).front() + "'"));
}

// LV-47
TEST_F(WarmStartTest, TheAgentReportsTheAddress) {
  Start();
  Recorder machine;
  EXPECT_THAT(*Create(machine).interface_ip, HasSubstr("192.0.2."));
  EXPECT_EQ(Fake().lease_calls, 0);
}

// LV-7
TEST_F(WarmStartTest, AMachineIsNotGivenTheAddressOfAnother) {
  Start();
  Fake().gives_one_address = true;
  Recorder first;
  Create(first, "0000000001");
  EXPECT_THAT(CreateFails("0000000002").message(),
              HasSubstr("was given the address 192.0.2.10, which machine"));
}

// LV-47
TEST_F(WarmStartTest, MachinesThatAreMadeAtATimeShareOneBoot) {
  Start();
  Recorder first, second;
  TaskGroup group(time.loop(), log::Logger("test"));
  Outcome<Instance> one = std::unexpected(Failure(Error(Verdict::kFail, "")));
  Outcome<Instance> two = one;
  group.Spawn("one", Keep(Attempt(adapter->Create(first, Parameters("0000000001"))), one));
  group.Spawn("two", Keep(Attempt(adapter->Create(second, Parameters("0000000002"))), two));
  time.Run(group.Join(), kLong);
  ASSERT_TRUE(one && two);
  EXPECT_THAT(Fake().restored, SizeIs(2));
  EXPECT_THAT(TemplateVolumes(), SizeIs(5));
}

// LV-49
TEST_F(WarmStartTest, AMachineThatCannotBeSavedIsBooted) {
  Start();
  Fake().run_script = [](const std::string&, const std::string& script) {
    return script.find("manager=$(manager)") == std::string::npos ? 0 : 1;
  };
  Recorder first, second;
  Create(first);
  EXPECT_THAT(Fake().restored, IsEmpty());
  EXPECT_THAT(TemplateVolumes(), IsEmpty());
  EXPECT_THAT(Fake().domains, SizeIs(1));
  std::size_t scripts = Fake().scripts.size();
  Create(second, "0000000043");
  EXPECT_THAT(Fake().scripts, SizeIs(scripts)) << "not tried again at once";
}

// LV-49
TEST_F(WarmStartTest, AMachineThatTakesNoIdentityIsBootedAnew) {
  Start();
  Fake().run_script = [](const std::string&, const std::string& script) {
    return script.find("host_key=") == std::string::npos ? 0 : 1;
  };
  Recorder machine;
  Instance instance = Create(machine);
  EXPECT_THAT(Fake().restored, SizeIs(1));
  EXPECT_THAT(Fake().domains, SizeIs(1));
  EXPECT_FALSE(instance.host_keys) << "it makes its own";
  EXPECT_THAT(Fake().domains.begin()->second, HasSubstr("/pool/debian.qcow2"));
}

// LV-50
TEST_F(WarmStartTest, ATemplateGoesWithItsImageAndNotBeforeItsMachines) {
  const std::string image = "np.here.image.b.u.qcow2";
  prepare = [&](testing::FakeHypervisor& host) {
    host.AddVolume({image, "/pool/" + image, "qcow2", 2 * kGibibyte, kGibibyte, ""});
  };
  label->diskimage = ImageName("debian");
  label->cloud_image.reset();
  label->disk = 2;
  Start();
  Recorder machine;
  driver::cloud::CreateParameters parameters = Parameters("0000000042");
  parameters.image_external_id = image;
  time.Run(adapter->Create(machine, std::move(parameters)), kLong);
  EXPECT_THROW(time.Run(adapter->DeleteImage(image)), Error);
  EXPECT_THAT(TemplateVolumes(), SizeIs(5));
  Delete(machine);
  EXPECT_THAT(TemplateVolumes(), SizeIs(5)) << "for the next machine";
  time.Run(adapter->DeleteImage(image));
  EXPECT_THAT(Fake().volumes, SizeIs(1)) << "the operator's own image";
}

// LV-50
TEST_F(WarmStartTest, OnlyTemplatesThatAreLongUnusedAreSweptAway) {
  Start();
  Recorder machine;
  Create(machine);
  for (auto& [name, volume] : Fake().volumes)
    volume.modified = static_cast<std::int64_t>(ToSeconds(time.loop().Now()));
  Pass(std::chrono::hours(23));
  for (const auto& resource : time.Run(adapter->ListResources()))
    EXPECT_THAT(resource.id, Not(HasSubstr(kWarmStart)));
  EXPECT_THAT(TemplateVolumes(), SizeIs(5));
  Pass(std::chrono::hours(2));
  time.Run(adapter->ListResources());
  EXPECT_THAT(TemplateVolumes(), SizeIs(5)) << "a machine runs from it";
  Delete(machine);
  time.Run(adapter->ListResources());
  EXPECT_THAT(TemplateVolumes(), IsEmpty());
}

// LV-50
TEST_F(WarmStartTest, AnotherLabelHasAnotherTemplate) {
  Start();
  Recorder first, second;
  Create(first);
  label->memory = 2048;
  Create(second, "0000000043");
  EXPECT_THAT(TemplateVolumes(), SizeIs(10));
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
