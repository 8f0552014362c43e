// What AWS answers: errors, lists; and what is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/query.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_types.h"
#include "drivers/aws/compute/terminations.h"

namespace nodepool::drivers::aws {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Ec2Error(const std::string& code, const std::string& message = "so") {
  return "<?xml version=\"1.0\"?>\n<Response><Errors><Error><Code>" + code + "</Code><Message>" + message +
         "</Message></Error></Errors><RequestID>r-1</RequestID></Response>";
}
Verdict VerdictFor(const std::string& code, int status = 400) {
  return ReadFault(status, Ec2Error(code)).verdict;
}

TEST(AwsFaultTest, CodesDecide) {
  EXPECT_EQ(VerdictFor("RequestLimitExceeded", 503), Verdict::kRateLimited);
  EXPECT_EQ(VerdictFor("Throttling"), Verdict::kRateLimited);
  EXPECT_EQ(VerdictFor("VcpuLimitExceeded"), Verdict::kQuota);
  EXPECT_EQ(VerdictFor("InsufficientFreeAddressesInSubnet"), Verdict::kQuota);
  EXPECT_EQ(VerdictFor("InternalError", 500), Verdict::kRetry);
  EXPECT_EQ(VerdictFor("InvalidInstanceID.NotFound"), Verdict::kNotFound);
  EXPECT_EQ(VerdictFor("UnauthorizedOperation", 403), Verdict::kInvalid);
  EXPECT_EQ(VerdictFor("InsufficientInstanceCapacity", 500), Verdict::kFail);
  EXPECT_EQ(VerdictFor("SomethingNew"), Verdict::kFail);
  EXPECT_EQ(VerdictFor("SomethingNew", 500), Verdict::kRetry);
  EXPECT_EQ(ReadFault(401, Ec2Error("AuthFailure")).refuses_signature, true);
  EXPECT_EQ(ReadFault(400, Ec2Error("RequestExpired")).refuses_signature, true);
  for (const char* code : {"AuthFailure", "ExpiredToken", "InvalidClientTokenId", "RequestExpired"}) {
    EXPECT_EQ(ReadFault(400, Ec2Error(code)).verdict, Verdict::kRetry)
        << code << " says nothing about the call";
  }
  EXPECT_EQ(ReadFault(403, Ec2Error("UnauthorizedOperation")).refuses_signature, false);
  EXPECT_EQ(ReadFault(401, Ec2Error("OptInRequired")).refuses_signature, false);
  EXPECT_EQ(ReadFault(401, "no XML").refuses_signature, std::nullopt);
}

// The same refusal has the same text each time: what differs is logged beside it.
TEST(AwsFaultTest, TextAndRequestId) {
  driver::cloud::api::Fault fault =
      ReadFault(403, Ec2Error("UnauthorizedOperation",
                              "You are not authorized.\nEncoded authorization failure message: AbCdEf"));
  EXPECT_EQ(fault.text,
            "UnauthorizedOperation: You are not authorized; give the key's user or role this right");
  EXPECT_EQ(fault.code, "UnauthorizedOperation");
  EXPECT_EQ(fault.request_id, "r-1");
  fault = ReadFault(403,
                    "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message>"
                    "</Error><RequestId>r-2</RequestId></ErrorResponse>");
  EXPECT_EQ(fault.text, "AccessDenied: no; give the key's user or role this right");
  EXPECT_EQ(fault.request_id, "r-2");
}

TEST(AwsFaultTest, RefusalsOfS3) {
  driver::cloud::api::Fault fault =
      ReadFault(503, "<Error><Code>SlowDown</Code><Message>less</Message><RequestId>r-3</RequestId></Error>");
  EXPECT_EQ(fault.verdict, Verdict::kRateLimited);
  EXPECT_EQ(fault.text, "SlowDown: less");
  EXPECT_EQ(fault.request_id, "r-3");
}

std::string ParseError(const std::string& text) {
  try {
    ParseXml(text, "x", "r-4");
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(AwsFaultTest, AnswersThatAreNoXml) {
  for (const char* body :
       {"", "busy", "<html><body>Bad gateway</body>", "<a><b></a>", "\xff\xfe<", "<Response/>"}) {
    driver::cloud::api::Fault fault = ReadFault(502, body);
    EXPECT_EQ(fault.verdict, Verdict::kRetry) << body;
    EXPECT_EQ(fault.code, "") << body;
  }
  EXPECT_EQ(ReadFault(404, "nothing").verdict, Verdict::kNotFound);
  EXPECT_THAT(ReadFault(502, "<html><body>Bad gateway</body>").text, HasSubstr("Bad gateway"));
  try {
    ParseXml("{\"a\": 1}", "DescribeInstances");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kRetry);
    EXPECT_THAT(error.message(), HasSubstr("DescribeInstances was answered with something that is no XML"));
  }
  EXPECT_EQ(ParseError("<?xml version='1.0'?><DescribeInsta"),
            "x: the answer is XML that ends in the middle, after 35 bytes; check that the AWS_ENDPOINT_URL "
            "settings "
            "and proxies lead to AWS (request id r-4)");
  EXPECT_THAT(ParseError("<Response><Errors>"), HasSubstr("ends in the middle, after 18 bytes"));
  EXPECT_THAT(ParseError("<html><body>Log in"), HasSubstr("is no XML: Log in; check"));
  EXPECT_THAT(ParseError(""), HasSubstr("is no XML"));
}

TEST(AwsFaultTest, WhatCodesMean) {
  EXPECT_TRUE(MeansNoCapacity("InsufficientInstanceCapacity"));
  EXPECT_TRUE(MeansNoCapacity("Server.InsufficientInstanceCapacity"));
  EXPECT_TRUE(MeansNoCapacity("Server.SpotInstanceTermination"));
  EXPECT_TRUE(MeansQuota("Client.VolumeLimitExceeded"));
  EXPECT_FALSE(MeansQuota("Client.InternalError"));
  EXPECT_TRUE(MeansBadSettings("InvalidSubnetID.NotFound"));
  EXPECT_TRUE(MeansBadSettings("InvalidTagKey.Malformed"));
  EXPECT_TRUE(MeansBadSettings("InvalidUserData.Malformed"));
  EXPECT_TRUE(MeansBadSettings("InvalidParameterCombination"));
  for (const char* other : {"InvalidAMIID.NotFound", "InvalidInstanceID.NotFound", "SomethingNew", ""}) {
    EXPECT_FALSE(MeansBadSettings(other)) << other;
  }
}

TEST(QueryTest, ListsAndFiltersAreNumbered) {
  Query query("DescribeInstances");
  query.AddList("InstanceId", {"i-1", "i-2"}).AddFilter("tag:a", {"x y"}).AddFilter("b", {"1", "2"});
  query.Add("MaxResults", 5).Add("Flag", true);
  EXPECT_EQ(
      query.Body("2016-11-15"),
      "Action=DescribeInstances&Version=2016-11-15&InstanceId.1=i-1&InstanceId.2=i-2&Filter.1.Name=tag%3Aa&"
      "Filter.1.Value.1=x%20y&Filter.2.Name=b&Filter.2.Value.1=1&Filter.2.Value.2=2&MaxResults=5&Flag=true");
  EXPECT_TRUE(query.reads());
  EXPECT_FALSE(Query("RunInstances").reads());
}

template <class T>
T ReadXml(const std::string& text, T (*read)(const pugi::xml_node&)) {
  pugi::xml_document document = ParseXml(text, "x");
  return read(document.document_element());
}

TEST(AwsAnswerTest, Instances) {
  auto list = ReadXml(R"(<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
    <requestId>r</requestId><reservationSet><item><unknown/><instancesSet><item>
      <instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name></instanceState>
      <instanceType>m5.large</instanceType><privateIpAddress>10.0.0.1</privateIpAddress>
      <ipAddress>192.0.2.1</ipAddress><placement><availabilityZone>us-west-2a</availabilityZone></placement>
      <instanceLifecycle>spot</instanceLifecycle>
      <tagSet><item><key>a</key><value>b &amp; c</value></item></tagSet>
      <networkInterfaceSet><item><ipv6AddressesSet><item><ipv6Address>2001:db8::1</ipv6Address></item>
      </ipv6AddressesSet></item></networkInterfaceSet>
      <stateReason><code>Server.X</code><message>m</message></stateReason></item></instancesSet></item>
    <item><instancesSet><item><instanceId>i-2</instanceId></item><item/></instancesSet></item><item/>
    </reservationSet></DescribeInstancesResponse>)",
                      &ReadReservations);
  ASSERT_EQ(list.size(), 2u);
  const Ec2Instance& first = list[0];
  EXPECT_EQ(first.id, "i-1");
  EXPECT_EQ(first.state, "running");
  EXPECT_EQ(first.type, "m5.large");
  EXPECT_EQ(first.zone, "us-west-2a");
  EXPECT_EQ(first.private_ipv4, "10.0.0.1");
  EXPECT_EQ(first.public_ipv4, "192.0.2.1");
  EXPECT_EQ(first.ipv6, "2001:db8::1");
  EXPECT_TRUE(first.is_spot);
  EXPECT_EQ(first.tags.at("a"), "b & c");
  EXPECT_EQ(first.reason_code, "Server.X");
  EXPECT_EQ(list[1].state, "");
}

TEST(AwsAnswerTest, ListsThatAreEmptyOrAbsent) {
  EXPECT_THAT(ReadXml("<r><reservationSet/></r>", &ReadReservations), IsEmpty());
  EXPECT_THAT(ReadXml("<r/>", &ReadReservations), IsEmpty());
  EXPECT_THAT(ReadXml("<r/>", &ReadImages), IsEmpty());
  EXPECT_THAT(ReadXml("<r/>", &ReadVolumes), IsEmpty());
  EXPECT_THAT(ReadXml("<r/>", &ReadTypes), IsEmpty());
}

TEST(AwsAnswerTest, TypesWithNumbersThatMakeNoSense) {
  auto types = ReadXml(
      "<r><instanceTypeSet><item><instanceType>a</instanceType><vCpuInfo><defaultVCpus>-5"
      "</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>much</sizeInMiB></memoryInfo></item>"
      "</instanceTypeSet></r>",
      &ReadTypes);
  EXPECT_EQ(types.at(0).vcpus, 0);
  EXPECT_EQ(types.at(0).ram, 0);
}

MachineImage ImageOf(const std::string& id, const std::string& created, const std::string& state) {
  MachineImage image;
  image.id = id;
  image.created = created;
  image.state = state;
  return image;
}

// AWS-6, AWS-8
TEST(AwsAnswerTest, TheNewestAvailableImage) {
  std::vector<MachineImage> images = {ImageOf("ami-1", "2024-03-01", "available"),
                                      ImageOf("ami-2", "2024-05-01", "available"),
                                      ImageOf("ami-3", "2024-06-01", "pending")};
  EXPECT_EQ(NewestAvailable(images)->id, "ami-2");
  EXPECT_EQ(NewestAvailable({images[2]}), nullptr);
}

// AWS-19
TEST(AwsAnswerTest, TheRootIsFoundByItsName) {
  auto images = ReadXml(
      "<r><imagesSet><item><imageId>ami-1</imageId><rootDeviceName>/dev/xvda</"
      "rootDeviceName><blockDeviceMapping>"
      "<item><deviceName>/dev/sdb</deviceName><virtualName>ephemeral0</virtualName></item>"
      "<item><deviceName>/dev/xvda</deviceName><ebs><snapshotId>snap-1</snapshotId><volumeSize>8</volumeSize>"
      "<volumeType>gp3</volumeType><iops>3000</iops><throughput>125</throughput><encrypted>true</encrypted></"
      "ebs>"
      "</item></blockDeviceMapping></item></imagesSet></r>",
      &ReadImages);
  const BlockDevice* root = images.at(0).Root();
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->name, "/dev/xvda");
  EXPECT_EQ(root->snapshot_id, "snap-1");
  EXPECT_EQ(root->size, 8);
  EXPECT_EQ(root->throughput, 125);
  images[0].devices.pop_back();
  EXPECT_EQ(images[0].Root(), nullptr) << "a disk of the host is no volume";
  images[0].devices.clear();
  EXPECT_EQ(images[0].Root(), nullptr);
}

TEST(AwsAnswerTest, IdsThatAnErrorNames) {
  EXPECT_THAT(NamedIn("The instance IDs 'i-0a, i-0bc' do not exist", {"i-0a", "i-0b", "i-0bc", "i-1"}),
              ElementsAre("i-0a", "i-0bc"));
  EXPECT_THAT(NamedIn("no", {"i-1"}), IsEmpty());
}

}  // namespace
}  // namespace nodepool::drivers::aws
