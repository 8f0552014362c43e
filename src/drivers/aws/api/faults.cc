#include "drivers/aws/api/faults.h"

#include "base/text.h"
#include "driver/cloud/api/fault_rules.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

namespace {

using Codes = api::CodeSet;

const Codes kThrottling = {"Throttling",
                           "ThrottlingException",
                           "ThrottledException",
                           "RequestThrottledException",
                           "RequestThrottled",
                           "TooManyRequestsException",
                           "RequestLimitExceeded",
                           "EC2ThrottledException",
                           "BandwidthLimitExceeded",
                           "ProvisionedThroughputExceededException",
                           "SlowDown"};

const Codes kQuota = {"VolumeLimitExceeded",           "HostLimitExceeded",
                      "InstanceLimitExceeded",         "VcpuLimitExceeded",
                      "MaxSpotInstanceCountExceeded",  "SpotInstanceCountExceeded",
                      "MaxIOPSLimitExceeded",          "NetworkInterfaceLimitExceeded",
                      "PrivateIpAddressLimitExceeded", "InsufficientFreeAddressesInSubnet",
                      "AddressLimitExceeded"};

const Codes kCapacity = {
    "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
    "InsufficientCapacityOnHost",   "SpotMaxPriceTooLow",       "UnfulfillableCapacity",
    "SpotInstanceTermination",      "SpotInstanceShutdown"};

const Codes kSignature = {"AuthFailure",
                          "InvalidClientTokenId",
                          "SignatureDoesNotMatch",
                          "InvalidAccessKeyId",
                          "ExpiredToken",
                          "ExpiredTokenException",
                          "RequestExpired",
                          "RequestTimeTooSkewed",
                          "InvalidSignatureException",
                          "RequestInTheFuture",
                          "UnrecognizedClientException"};

const Codes kForbidden = {"UnauthorizedOperation", "AccessDenied",        "AccessDeniedException",
                          "OptInRequired",         "PendingVerification", "Blocked"};

const Codes kTransient = {"InternalError", "InternalFailure", "InternalServerException", "Unavailable",
                          "ServiceUnavailable"};

const Codes kBadSettings = {"InvalidSubnet",    "InvalidParameterValue",     "InvalidParameterCombination",
                            "InvalidParameter", "InvalidBlockDeviceMapping", "InvalidInstanceType",
                            "MissingParameter", "UnknownParameter",          "UnsupportedOperation",
                            "Unsupported",      "TagLimitExceeded",          "VPCIdNotSpecified"};

// "Server.InsufficientInstanceCapacity" and "Client.VolumeLimitExceeded" are reasons of an instance's end.
std::string_view WithoutSide(std::string_view code) {
  for (std::string_view side : {"Server.", "Client."}) {
    if (code.starts_with(side)) return code.substr(side.size());
  }
  return code;
}

// Signatures are of the account, not of the call: the next one may be signed with other credentials. Lack of
// capacity may have the status 500.
const std::vector<api::FaultRule>& Rules() {
  static const std::vector<api::FaultRule> rules = {
      {0, kThrottling, Verdict::kRateLimited},
      {0, kQuota, Verdict::kQuota},
      {0, kTransient, Verdict::kRetry},
      {0, kCapacity, Verdict::kFail},
      {0, {"ExpiredToken", "ExpiredTokenException"}, Verdict::kRetry, "renew the credentials"},
      {0,
       {"RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"},
       Verdict::kRetry,
       "renew the credentials, or correct this host's clock"},
      {0, kSignature, Verdict::kRetry, "check the key, and that it belongs to this region"},
      {0, {"OptInRequired"}, Verdict::kInvalid, "accept the terms of the image in the AWS Marketplace"},
      {0, kForbidden, Verdict::kInvalid, "give the key's user or role this right"},
      {0, {"*.NotFound", "NoSuch*"}, Verdict::kNotFound},
  };
  return rules;
}

// In one line; without the encoded details of a missing permission, which are long and different each time.
std::string MessageText(std::string text) {
  if (std::size_t blob = text.find("Encoded authorization failure"); blob != std::string::npos)
    text.resize(blob);
  return api::OneLine(std::move(text));
}

}  // namespace

api::Fault FaultOf(int status, std::string code, std::string message) {
  message = MessageText(std::move(message));
  std::string text = message.empty() ? code : code + ": " + message;
  bool refuses_signature = kSignature.contains(code);
  api::Fault fault = api::Classify(Rules(), status, std::move(code), std::move(text));
  fault.refuses_signature = refuses_signature;
  return fault;
}

api::Fault ReadFault(int status, std::string_view body) {
  api::Fault fault;
  pugi::xml_document document;
  bool is_xml = document.load_buffer(body.data(), body.size()) && document.document_element();
  pugi::xml_node root = document.document_element();
  pugi::xml_node error = root.child("Error");
  if (!error) error = root.child("Errors").child("Error");
  if (!error && std::string_view(root.name()) == "Error") error = root;
  if (!is_xml || !error) {
    fault.verdict = api::VerdictOfStatus(status);
    fault.text = api::FaultText(body);
    return fault;
  }
  fault = FaultOf(status, Excerpt(TextAt(error, {"Code"}), 100), TextAt(error, {"Message"}));
  fault.request_id = TextAt(root, {"RequestID"});
  if (fault.request_id.empty()) fault.request_id = TextAt(root, {"RequestId"});
  fault.request_id = Excerpt(fault.request_id, 100);
  return fault;
}

bool MeansNoCapacity(std::string_view code) { return kCapacity.contains(WithoutSide(code)); }

bool MeansThrottled(std::string_view code) { return kThrottling.contains(code); }

bool ConcernsOneCandidate(std::string_view code) {
  return code == "Unsupported" || code == "InsufficientFreeAddressesInSubnet" ||
         code == "UnauthorizedOperation";
}

bool MeansQuota(std::string_view code) { return kQuota.contains(WithoutSide(code)); }

bool MeansBadSettings(std::string_view code) {
  // An image may appear, and an instance is not a setting.
  if (code.starts_with("InvalidAMIID.") || code.starts_with("InvalidInstanceID.")) return false;
  bool names_nothing = code.ends_with(".NotFound") || code.ends_with(".Malformed");
  return names_nothing || kBadSettings.contains(code) || code.starts_with("InvalidTag");
}

}  // namespace nodepool::drivers::aws
