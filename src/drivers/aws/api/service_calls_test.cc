#include "drivers/aws/api/service_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/text.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

namespace {

// The example key of AWS's documentation and test suite.
const Credentials kExample{.key_id = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

std::string Authorization(const net::HttpCall& call, const SigningScope& scope,
                          const Credentials& credentials = kExample) {
  WallTime now = ParseIso8601("2015-08-30T12:36:00Z").value();
  for (const auto& [name, value] : SignatureHeaders(call, credentials, scope, now)) {
    if (name == "Authorization") return value;
  }
  return "";
}

std::string SignatureOf(const net::HttpCall& call, const SigningScope& scope,
                        const Credentials& credentials = kExample) {
  std::string header = Authorization(call, scope, credentials);
  return header.substr(header.rfind('=') + 1);
}

net::HttpCall Get(std::string url) {
  net::HttpCall call;
  call.url = std::move(url);
  return call;
}

// Test vectors that AWS publishes: "get-vanilla" and "post-x-www-form-urlencoded" of its suite, and the
// worked example of a call of IAM.
TEST(SignatureTest, PublishedVectors) {
  const SigningScope suite{"us-east-1", "service"};
  EXPECT_EQ(Authorization(Get("https://example.amazonaws.com/"), suite),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  net::HttpCall post = Get("https://example.amazonaws.com/");
  post.method = "POST";
  post.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  post.body = "Param1=value1";
  EXPECT_EQ(SignatureOf(post, suite), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
  net::HttpCall list = Get("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
  list.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  EXPECT_EQ(SignatureOf(list, {"us-east-1", "iam"}),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
  EXPECT_EQ(Hex(SigningKey(kExample.secret, "20150830", {"us-east-1", "iam"})),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
}

// Computed by a short program of hmac and sha256 alone.
TEST(SignatureTest, TheTokenOfTemporaryCredentialsIsSigned) {
  Credentials temporary = kExample;
  temporary.session_token = "tok/en+==";
  net::HttpCall call = Get("https://example.amazonaws.com");
  EXPECT_EQ(SignatureOf(call, {"us-east-1", "service"}, temporary),
            "162ff216448699490397502284a0c7b7185a4e4e989c79798fe196d1ca815eb2");
  net::HttpHeaders headers = SignatureHeaders(call, temporary, {"us-east-1", "service"}, FromSeconds(0));
  EXPECT_EQ(headers.at(0), (std::pair<std::string, std::string>("X-Amz-Date", "19700101T000000Z")));
  EXPECT_EQ(headers.at(1).second, "tok/en+==");
}

std::string LineOf(const net::HttpCall& call, int number, const std::string& service = "service") {
  std::string text = CanonicalRequest(call, {"us-east-1", service});
  for (; number > 0; --number) text.erase(0, text.find('\n') + 1);
  return text.substr(0, text.find('\n'));
}

TEST(SignatureTest, KeysOfS3AreSignedAsTheyAre) {
  EXPECT_EQ(LineOf(Get("https://h/b/a%20b//c"), 1), "/b/a%2520b/c");
  EXPECT_EQ(LineOf(Get("https://h/b/a%20b//c"), 1, "s3"), "/b/a%20b//c");
}

TEST(SignatureTest, ADigestInTheHeadersReplacesThatOfTheBody) {
  net::HttpCall call = Get("https://h/");
  call.headers.emplace_back(kContentDigest, "abc");
  EXPECT_TRUE(CanonicalRequest(call, {"us-east-1", "s3"}).ends_with("\nabc"));
}

TEST(SignatureTest, PathsAreNormalisedAndEncodedOnceMore) {
  EXPECT_EQ(LineOf(Get("https://h"), 1), "/");
  EXPECT_EQ(LineOf(Get("https://h/a/./b/../c//d/"), 1), "/a/c/d/");
  EXPECT_EQ(LineOf(Get("https://h/a%20b"), 1), "/a%2520b");
  EXPECT_EQ(LineOf(Get("https://h/.."), 1), "/");
}

TEST(SignatureTest, QueriesAreSortedAndEncodedInOneWay) {
  EXPECT_EQ(LineOf(Get("https://h/?b=2&a=%41&a=1&c&d=x%2fy&e=%"), 2), "a=1&a=A&b=2&c=&d=x%2Fy&e=%25");
  EXPECT_EQ(LineOf(Get("https://h?x=1#part"), 2), "x=1");
}

TEST(SignatureTest, HeadersAreLowerCaseSortedAndFolded) {
  net::HttpCall call = Get("https://H:443/");
  call.headers = {{"X-Amz-B", "  two   words "}, {"Accept", "a"}, {"X-Amz-B", "again"}};
  EXPECT_EQ(LineOf(call, 3), "accept:a");
  EXPECT_EQ(LineOf(call, 4), "host:h");
  EXPECT_EQ(LineOf(call, 5), "x-amz-b:two words,again");
  EXPECT_EQ(LineOf(Get("http://h:80/"), 3), "host:h");
  EXPECT_EQ(LineOf(Get("http://h:8080/"), 3), "host:h:8080");
  EXPECT_EQ(LineOf(Get("https://h:80/"), 3), "host:h:80");
}

// What AWS answers: errors, lists; and what is sent.

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
