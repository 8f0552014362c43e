#include "drivers/aws/testing/ec2_imposter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <stdexcept>

#include "base/text.h"

namespace nodepool::testing {

namespace {

// What EC2 refuses.
struct Refusal {
  int status;
  std::string code;
  std::string message;
};

std::string Decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

Ec2Imposter::Parameters ReadForm(const std::string& body) {
  Ec2Imposter::Parameters parameters;
  for (const std::string& item : Split(body, '&')) {
    std::size_t equals = item.find('=');
    parameters[Decoded(item.substr(0, equals))] = Decoded(item.substr(equals + 1));
  }
  return parameters;
}

// Of the only action that has JSON.
Ec2Imposter::Parameters ReadJson(const std::string& body) {
  Ec2Imposter::Parameters parameters{{"Action", "ListServiceQuotas"}};
  boost::json::value parsed = boost::json::parse(body);
  for (const auto& [name, value] : parsed.as_object()) {
    parameters[std::string(name)] = std::string(value.as_string());
  }
  return parameters;
}

std::string At(const Ec2Imposter::Parameters& parameters, const std::string& name) {
  auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

std::vector<std::string> ListOf(const Ec2Imposter::Parameters& parameters, const std::string& name) {
  std::vector<std::string> values;
  for (int i = 1; parameters.contains(fmt::format("{}.{}", name, i)); ++i) {
    values.push_back(At(parameters, fmt::format("{}.{}", name, i)));
  }
  return values;
}

std::map<std::string, std::string> TagsOf(const Ec2Imposter::Parameters& parameters) {
  std::map<std::string, std::string> tags;
  for (int i = 1; parameters.contains(fmt::format("TagSpecification.1.Tag.{}.Key", i)); ++i) {
    std::string tag = fmt::format("TagSpecification.1.Tag.{}.", i);
    tags[At(parameters, tag + "Key")] = At(parameters, tag + "Value");
  }
  return tags;
}

std::string TagSet(const std::map<std::string, std::string>& tags) {
  std::string text;
  for (const auto& [key, value] : tags) {
    text += fmt::format("<item><key>{}</key><value>{}</value></item>", key, value);
  }
  return "<tagSet>" + text + "</tagSet>";
}

net::HttpReply Reply(int status, std::string body) { return {status, {}, std::move(body)}; }

}  // namespace

int Ec2Imposter::Count(const std::string& action) const {
  return static_cast<int>(std::ranges::count(calls, action, &Call::action));
}

const Ec2Imposter::Parameters& Ec2Imposter::Last(const std::string& action) const {
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->action == action) return call->parameters;
  }
  throw std::logic_error("there was no call " + action);
}

Task<net::HttpReply> Ec2Imposter::Send(net::HttpCall call) {
  bool is_json = call.body.starts_with('{');
  Parameters parameters = is_json ? ReadJson(call.body) : ReadForm(call.body);
  const std::string action = At(parameters, "Action");
  std::string authorization;
  for (const auto& [name, value] : call.headers) {
    if (name == "Authorization") authorization = value;
  }
  calls.push_back({action, parameters, loop_.SteadyNow(), authorization});
  if (is_silent) co_await loop_.SleepFor(std::chrono::hours(1000));
  co_await loop_.SleepFor(latency);
  auto fault =
      std::ranges::find_if(faults, [&](const Fault& one) { return one.action == action && one.times > 0; });
  bool has_fault = fault != faults.end();
  if (has_fault) --fault->times;
  if (has_fault && fault->breaks_before) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
  if (has_fault && fault->has_no_host) {
    throw net::HttpError(Verdict::kRetry, "POST " + call.url + ": Could not resolve host", false, true);
  }
  if (has_fault && !fault->body.empty()) {
    net::HttpReply reply = Reply(200, fault->body);
    reply.headers.emplace_back("x-amzn-requestid", fmt::format("request-{}", calls.size()));
    co_return reply;
  }
  Refusal refusal{};
  std::string answer;
  if (has_fault && !fault->breaks_after) {
    refusal = {fault->status, fault->code, fault->message};
  } else {
    try {
      answer = Answer(action, parameters);
    } catch (const Refusal& refused) {
      refusal = refused;
    }
  }
  if (has_fault && fault->breaks_after) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
  if (refusal.status != 0 && is_json) {
    co_return Reply(refusal.status, fmt::format(R"({{"__type": "com.amazonaws.x#{}", "Message": "{}"}})",
                                                refusal.code, refusal.message));
  }
  if (is_json) co_return Reply(200, answer);
  if (refusal.status != 0) {
    co_return Reply(
        refusal.status,
        fmt::format("<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors>"
                    "<RequestID>request-{}</RequestID></Response>",
                    refusal.code, refusal.message, calls.size()));
  }
  co_return Reply(200, fmt::format("<{0}Response><requestId>r</requestId>{1}</{0}Response>", action, answer));
}

std::string Ec2Imposter::Answer(const std::string& action, const Parameters& parameters) {
  if (action == "RunInstances") return RunInstances(parameters);
  if (action == "DescribeInstances") return DescribeInstances(parameters);
  if (action == "TerminateInstances") return TerminateInstances(parameters);
  if (action == "CreateFleet") return CreateFleet(parameters);
  if (action == "CreateLaunchTemplate") return CreateTemplate(parameters);
  if (action == "DescribeLaunchTemplates") return DescribeTemplates();
  if (action == "DeleteLaunchTemplate") return DeleteTemplate(parameters);
  if (action == "DescribeSpotInstanceRequests") return DescribeSpotRequests(parameters);
  if (action == "GetConsoleOutput") return GetConsole(parameters);
  if (action == "AllocateHosts") return AllocateHosts(parameters);
  if (action == "DescribeHosts") return DescribeHosts();
  if (action == "ReleaseHosts") return ReleaseHosts(parameters);
  if (action == "DescribeInstanceTypes") return DescribeTypes(parameters);
  if (action == "DescribeImages") return DescribeImages(parameters);
  // Nobody has uploaded anything.
  if (action == "DescribeSnapshots" || action.starts_with("DescribeImport")) return "";
  if (action == "DescribeVolumes") return DescribeVolumes(parameters);
  if (action == "ListServiceQuotas") return ListQuotas(parameters);
  if (action == "DeleteVolume") {
    if (volumes.erase(At(parameters, "VolumeId")) == 0) throw Refusal{400, "InvalidVolume.NotFound", "gone"};
    return "<return>true</return>";
  }
  throw Refusal{400, "InvalidAction", action};
}

std::string Ec2Imposter::Item(const std::string& id, const Instance& instance) const {
  SteadyTime now = loop_.SteadyNow();
  std::string state = now < instance.running ? "pending" : "running";
  if (now >= instance.ending) state = now < instance.gone ? "shutting-down" : "terminated";
  std::string text = fmt::format(
      "<instanceId>{}</instanceId><instanceState><name>{}</name></instanceState><instanceType>{}</"
      "instanceType>"
      "<placement><availabilityZone>us-west-2a</availabilityZone>{}</placement>",
      id, state, instance.type, instance.host.empty() ? "" : "<hostId>" + instance.host + "</hostId>");
  text += "<privateIpAddress>10.0.0.1</privateIpAddress>" + TagSet(instance.tags);
  bool is_running = state == "running";
  if (is_running && instance.has_public && now >= instance.has_address)
    text += "<ipAddress>192.0.2.1</ipAddress>";
  if (instance.has_ipv6) {
    text +=
        "<networkInterfaceSet><item><ipv6AddressesSet><item><ipv6Address>2001:db8::1</ipv6Address></item>"
        "</ipv6AddressesSet></item></networkInterfaceSet>";
  }
  if (instance.is_spot) text += "<instanceLifecycle>spot</instanceLifecycle>";
  if (!instance.reason.empty() && now >= instance.ending) {
    text += fmt::format("<stateReason><code>{}</code><message>so</message></stateReason>", instance.reason);
  }
  return "<item>" + text + "</item>";
}

std::string Ec2Imposter::RefusalOf(const std::string& type, const std::string& subnet,
                                   const std::string& zone) const {
  for (const std::string& part : {type, subnet, zone}) {
    auto refused = refused_candidates.find(part);
    if (refused != refused_candidates.end()) return refused->second;
  }
  return "";
}

std::map<std::string, Ec2Imposter::Instance>::iterator Ec2Imposter::Make(const std::string& token,
                                                                         const std::string& type,
                                                                         const Parameters& parameters) {
  auto same = std::ranges::find_if(instances, [&](const auto& one) { return one.second.token == token; });
  if (same != instances.end()) return same;
  SteadyTime now = loop_.SteadyNow();
  Instance instance;
  instance.type = type;
  instance.token = token;
  instance.tags = TagsOf(parameters);
  instance.visible = now + visible_after;
  instance.running = now + pending;
  instance.has_address = instance.running + address_after;
  if (!next_dies_of.empty()) {
    instance.ending = instance.gone = instance.running;
    instance.reason = std::exchange(next_dies_of, "");
  }
  return instances.emplace(fmt::format("i-{:017x}", ++last_id_), std::move(instance)).first;
}

std::string Ec2Imposter::RunInstances(const Parameters& parameters) {
  const std::string type = At(parameters, "InstanceType");
  std::string refusal = RefusalOf(type, At(parameters, "NetworkInterface.1.SubnetId"),
                                  At(parameters, "Placement.AvailabilityZone"));
  if (!refusal.empty()) throw Refusal{400, refusal, "not now"};
  auto made = Make(At(parameters, "ClientToken"), type, parameters);
  Instance& instance = made->second;
  instance.is_spot = At(parameters, "InstanceMarketOptions.MarketType") == "spot";
  instance.host = At(parameters, "Placement.HostId");
  instance.has_public = At(parameters, "NetworkInterface.1.AssociatePublicIpAddress") == "true";
  instance.has_ipv6 = parameters.contains("NetworkInterface.1.Ipv6AddressCount");
  return "<instancesSet>" + Item(made->first, instance) + "</instancesSet>";
}

std::string Ec2Imposter::CreateFleet(const Parameters& parameters) {
  const std::string config = "LaunchTemplateConfigs.1.";
  std::string name = At(parameters, config + "LaunchTemplateSpecification.LaunchTemplateName");
  if (!templates.contains(name)) {
    throw Refusal{400, "InvalidLaunchTemplateName.NotFoundException", "there is no template " + name};
  }
  std::string errors;
  for (int i = 1; parameters.contains(fmt::format("{}Overrides.{}.InstanceType", config, i)); ++i) {
    const std::string override = fmt::format("{}Overrides.{}.", config, i);
    const std::string type = At(parameters, override + "InstanceType");
    std::string refusal =
        RefusalOf(type, At(parameters, override + "SubnetId"), At(parameters, override + "AvailabilityZone"));
    if (refusal.empty()) {
      auto made = Make(At(parameters, "ClientToken"), type, parameters);
      made->second.is_spot =
          At(parameters, "TargetCapacitySpecification.DefaultTargetCapacityType") == "spot";
      return fmt::format(
          "<fleetInstanceSet><item><instanceIds><item>{}</item></instanceIds><instanceType>{}</instanceType>"
          "</item></fleetInstanceSet>",
          made->first, made->second.type);
    }
    errors += fmt::format("<item><errorCode>{}</errorCode><errorMessage>no {}</errorMessage></item>", refusal,
                          type);
  }
  return "<errorSet>" + errors + "</errorSet>";
}

std::string Ec2Imposter::CreateTemplate(const Parameters& parameters) {
  std::string name = At(parameters, "LaunchTemplateName");
  if (templates.contains(name)) {
    throw Refusal{400, "InvalidLaunchTemplateName.AlreadyExistsException", "it is in use"};
  }
  templates[name] = {parameters, TagsOf(parameters)};
  ++templates_made;
  return "";
}

std::string Ec2Imposter::DescribeTemplates() const {
  std::string items;
  for (const auto& [name, one] : templates) {
    items +=
        fmt::format("<item><launchTemplateName>{}</launchTemplateName>{}</item>", name, TagSet(one.tags));
  }
  return "<launchTemplates>" + items + "</launchTemplates>";
}

std::string Ec2Imposter::DeleteTemplate(const Parameters& parameters) {
  if (templates.erase(At(parameters, "LaunchTemplateName")) == 0) {
    throw Refusal{400, "InvalidLaunchTemplateName.NotFoundException", "gone"};
  }
  return "";
}

std::string Ec2Imposter::DescribeInstances(const Parameters& parameters) {
  std::string provider = At(parameters, "Filter.1.Value.1");
  int begin = 0;
  if (std::string token = At(parameters, "NextToken"); !token.empty()) begin = std::stoi(token);
  std::string items;
  int number = 0;
  for (const auto& [id, instance] : instances) {
    auto tag = instance.tags.find("nodepool_provider_name");
    bool matches = provider.empty() || (tag != instance.tags.end() && tag->second == provider);
    if (!matches || loop_.SteadyNow() < instance.visible) continue;
    bool is_on_page = number >= begin && number < begin + page_size;
    ++number;
    if (is_on_page) items += "<item><instancesSet>" + Item(id, instance) + "</instancesSet></item>";
  }
  std::string next =
      number > begin + page_size ? fmt::format("<nextToken>{}</nextToken>", begin + page_size) : "";
  return "<reservationSet>" + items + "</reservationSet>" + next;
}

std::string Ec2Imposter::TerminateInstances(const Parameters& parameters) {
  std::vector<std::string> ids = ListOf(parameters, "InstanceId");
  for (const std::string& id : ids) {
    auto found = instances.find(id);
    bool is_known = found != instances.end() && loop_.SteadyNow() >= found->second.visible;
    if (!is_known) {
      throw Refusal{400, "InvalidInstanceID.NotFound",
                    fmt::format("The instance ID '{}' does not exist", id)};
    }
  }
  for (const std::string& id : ids) {
    Instance& instance = instances.at(id);
    instance.ending = std::min(instance.ending, loop_.SteadyNow());
    instance.gone = std::min(instance.gone, instance.ending + shutting_down);
  }
  return "<instancesSet/>";
}

std::string Ec2Imposter::DescribeSpotRequests(const Parameters& parameters) const {
  std::vector<std::string> wanted = ListOf(parameters, "Filter.1.Value");
  std::string items;
  for (const auto& [id, status] : spot_statuses) {
    if (std::ranges::find(wanted, status) == wanted.end()) continue;
    items += fmt::format(
        "<item><instanceId>{}</instanceId><status><code>{}</code><message>so</message></status></item>", id,
        status);
  }
  return "<spotInstanceRequestSet>" + items + "</spotInstanceRequestSet>";
}

std::string Ec2Imposter::GetConsole(const Parameters& parameters) const {
  bool is_unsupported = parameters.contains("Latest") && !shows_latest_console;
  if (is_unsupported) throw Refusal{400, "UnsupportedOperation", "not for this type"};
  return "<output>" + Base64(console) + "</output>";
}

std::string Ec2Imposter::AllocateHosts(const Parameters& parameters) {
  std::string token = At(parameters, "ClientToken");
  auto same = std::ranges::find_if(hosts, [&](const auto& one) { return one.second.token == token; });
  if (same == hosts.end()) {
    Host host{token, TagsOf(parameters), loop_.SteadyNow() + pending};
    same = hosts.emplace(fmt::format("h-{:017x}", ++last_id_), std::move(host)).first;
  }
  return "<hostIdSet><item>" + same->first + "</item></hostIdSet>";
}

std::string Ec2Imposter::DescribeHosts() const {
  std::string items;
  for (const auto& [id, host] : hosts) {
    bool is_available = loop_.SteadyNow() >= host.available;
    const char* state = host.is_released ? "released" : is_available ? "available" : "pending";
    items += fmt::format("<item><hostId>{}</hostId><state>{}</state>{}</item>", id, state, TagSet(host.tags));
  }
  return "<hostSet>" + items + "</hostSet>";
}

std::string Ec2Imposter::ReleaseHosts(const Parameters& parameters) {
  std::string id = At(parameters, "HostId.1");
  auto host = hosts.find(id);
  auto runs_here = [&](const auto& one) {
    return one.second.host == id && loop_.SteadyNow() < one.second.gone;
  };
  std::string code;
  if (host == hosts.end()) code = "Client.InvalidHostID.NotFound";
  if (std::ranges::any_of(instances, runs_here)) code = "Client.InvalidHost.Occupied";
  if (releases_refused > 0) {
    --releases_refused;
    code = "Client.InvalidHost.MinimumTime";
  }
  if (code.empty()) {
    host->second.is_released = true;
    return "<successful><item>" + id + "</item></successful><unsuccessful/>";
  }
  return fmt::format(
      "<unsuccessful><item><resourceId>{}</resourceId><error><code>{}</code><message>not now</message>"
      "</error></item></unsuccessful>",
      id, code);
}

std::string Ec2Imposter::DescribeTypes(const Parameters& parameters) {
  std::string items;
  for (const std::string& name : ListOf(parameters, "InstanceType")) {
    auto type = types.find(name);
    if (type == types.end()) {
      throw Refusal{400, "InvalidInstanceType",
                    "The following supplied instance types do not exist: [" + name + "]"};
    }
    items += fmt::format(
        "<item><instanceType>{}</instanceType><vCpuInfo><defaultVCpus>{}</defaultVCpus><defaultCores>{}"
        "</defaultCores></vCpuInfo><memoryInfo><sizeInMiB>4096</sizeInMiB></memoryInfo></item>",
        name, type->second, type->second / 2);
  }
  return "<instanceTypeSet>" + items + "</instanceTypeSet>";
}

std::string Ec2Imposter::DescribeImages(const Parameters& parameters) {
  if (At(parameters, "Owner.1") == "self") return "";
  std::string wanted = At(parameters, "ImageId.1");
  if (!wanted.empty() && !images.contains(wanted)) {
    throw Refusal{400, "InvalidAMIID.NotFound", fmt::format("The image id '[{}]' does not exist", wanted)};
  }
  std::string items;
  for (const auto& [id, image] : images) {
    if (!wanted.empty() && id != wanted) continue;
    items += fmt::format(
        "<item><imageId>{}</imageId><imageState>{}</imageState><creationDate>{}</creationDate>"
        "<rootDeviceName>{}</rootDeviceName><blockDeviceMapping>{}</blockDeviceMapping></item>",
        id, image.state, image.created, image.root, image.devices);
  }
  return "<imagesSet>" + items + "</imagesSet>";
}

std::string Ec2Imposter::DescribeVolumes(const Parameters& parameters) const {
  bool wants_unused = At(parameters, "Filter.2.Value.1") == "available";
  std::string items;
  for (const auto& [id, volume] : volumes) {
    if (wants_unused && !volume.instance.empty()) continue;
    items += fmt::format(
        "<item><volumeId>{}</volumeId><size>{}</size><volumeType>{}</volumeType><iops>{}</"
        "iops><attachmentSet>"
        "<item><instanceId>{}</instanceId></item></attachmentSet>{}</item>",
        id, volume.size, volume.type, volume.iops, volume.instance, TagSet(volume.tags));
  }
  return "<volumeSet>" + items + "</volumeSet>";
}

std::string Ec2Imposter::ListQuotas(const Parameters& parameters) const {
  int begin = 0;
  if (std::string token = At(parameters, "NextToken"); !token.empty()) begin = std::stoi(token);
  boost::json::array list;
  int number = 0;
  for (const auto& [code, value] : quotas.at(At(parameters, "ServiceCode"))) {
    bool is_on_page = number >= begin && number < begin + page_size;
    ++number;
    if (is_on_page) list.push_back(boost::json::object{{"QuotaCode", code}, {"Value", value}});
  }
  boost::json::object answer{{"Quotas", std::move(list)}};
  if (number > begin + page_size) answer["NextToken"] = std::to_string(begin + page_size);
  return boost::json::serialize(answer);
}

}  // namespace nodepool::testing
