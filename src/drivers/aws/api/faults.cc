#include "drivers/aws/api/faults.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

namespace {

using Codes = std::set<std::string_view>;

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

// What an operator does about a refusal; empty: the message says it, or nothing.
std::string_view RemedyFor(std::string_view code) {
  static const Codes expired = {"ExpiredToken", "ExpiredTokenException"};
  static const Codes clock = {"RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"};
  if (expired.contains(code)) return "renew the credentials";
  if (clock.contains(code)) return "renew the credentials, or correct this host's clock";
  if (kSignature.contains(code)) return "check the key, and that it belongs to this region";
  if (code == "OptInRequired") return "accept the terms of the image in the AWS Marketplace";
  if (kForbidden.contains(code)) return "give the key's user or role this right";
  return "";
}

Verdict VerdictOf(std::string_view code, int status) {
  if (kThrottling.contains(code)) return Verdict::kRateLimited;
  if (kQuota.contains(code)) return Verdict::kQuota;
  if (kTransient.contains(code)) return Verdict::kRetry;
  if (kCapacity.contains(code)) return Verdict::kFail;  // also with status 500
  // Of the account, not of the call: the next one may be signed with other credentials.
  if (kSignature.contains(code)) return Verdict::kRetry;
  if (kForbidden.contains(code)) return Verdict::kInvalid;
  if (code.ends_with(".NotFound") || code.starts_with("NoSuch")) return Verdict::kNotFound;
  if (code.empty() || status >= 500) return api::VerdictOfStatus(status);
  return Verdict::kFail;
}

// In one line; without the encoded details of a missing permission, which are long and different each time.
std::string MessageText(std::string text) {
  if (std::size_t blob = text.find("Encoded authorization failure"); blob != std::string::npos)
    text.resize(blob);
  return api::OneLine(std::move(text));
}

}  // namespace

api::Fault FaultOf(int status, std::string code, std::string message) {
  api::Fault fault;
  fault.code = std::move(code);
  message = MessageText(std::move(message));
  fault.text = message.empty() ? fault.code : fault.code + ": " + message;
  fault.text = api::WithRemedy(std::move(fault.text), RemedyFor(fault.code));
  fault.verdict = VerdictOf(fault.code, status);
  fault.refuses_signature = kSignature.contains(fault.code);
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
