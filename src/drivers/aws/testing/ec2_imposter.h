#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "async/loop.h"
#include "net/http/http_client.h"

namespace nodepool::testing {

// An in-process EC2 and Service Quotas: the calls that the driver makes, with answers in the form of real
// ones. It records every call and simulates the faults that a test wants; it does not check signatures. For
// tests in virtual time.
class Ec2Imposter : public net::HttpClient {
 public:
  using Parameters = std::map<std::string, std::string>;

  explicit Ec2Imposter(Loop& loop) : loop_(loop) {}

  Task<net::HttpReply> Send(net::HttpCall call) override;

  // --- Recorded calls ---------------------------------------------------------
  struct Call {
    std::string action;
    Parameters parameters;
    SteadyTime when;
    std::string authorization;  // the header
  };
  std::vector<Call> calls;
  int Count(const std::string& action) const;
  // The last one; the test fails without one.
  const Parameters& Last(const std::string& action) const;

  // --- Faults -----------------------------------------------------------------
  struct Fault {
    std::string action;
    int status = 400;
    std::string code;
    std::string message = "no";
    int times = 1;
    // The connection breaks: before the call is carried out, or after.
    bool breaks_before = false;
    bool breaks_after = false;
    bool has_no_host = false;  // its name is unknown
    std::string body = "";     // in place of EC2's answer, with status 200
  };
  std::deque<Fault> faults;
  bool is_silent = false;  // does not answer

  // --- Contents ---------------------------------------------------------------
  struct Instance {
    std::string type;
    std::string token;
    std::map<std::string, std::string> tags;
    bool is_spot = false;
    SteadyTime visible{};
    SteadyTime running{};
    SteadyTime has_address{};
    SteadyTime gone = SteadyTime::max();  // terminated; shutting-down before
    SteadyTime ending = SteadyTime::max();
    std::string reason;  // why it ended
    bool has_public = true;
    bool has_ipv6 = false;
    std::string host;
  };
  std::map<std::string, Instance> instances;
  struct Volume {
    std::map<std::string, std::string> tags;
    std::string instance;  // that uses it; empty: none
    std::string type = "gp3";
    int size = 8;  // GiB
    int iops = 0;
  };
  std::map<std::string, Volume> volumes;
  struct Host {
    std::string token;
    std::map<std::string, std::string> tags;
    SteadyTime available{};
    bool is_released = false;
  };
  std::map<std::string, Host> hosts;
  std::map<std::string, std::string>
      spot_statuses;    // of the requests, by instance, where it is not "fulfilled"
  std::string console;  // of all instances
  bool shows_latest_console = true;
  int releases_refused = 0;  // so many of the next
  // The codes with which launches are refused, by instance type, subnet or zone.
  std::map<std::string, std::string> refused_candidates;
  struct Template {
    Parameters parameters;  // of the call that made it
    std::map<std::string, std::string> tags;
  };
  std::map<std::string, Template> templates;  // by name
  int templates_made = 0;
  struct Image {
    std::string state = "available";
    std::string created = "2024-01-01T00:00:00.000Z";
    std::string root = "/dev/sda1";
    std::string devices;  // items of its blockDeviceMapping
  };
  std::map<std::string, Image> images = {{"ami-1", {}}};
  std::map<std::string, int> types = {{"t3.medium", 2}, {"m5.large", 2}};  // virtual CPUs

  // By service and code; of volumes in TiB.
  std::map<std::string, std::map<std::string, double>> quotas = {{"ec2", {{"L-1216C47A", 1000}}},
                                                                 {"ebs", {}}};

  Duration latency = std::chrono::milliseconds(10);
  Duration visible_after{0};
  Duration pending = std::chrono::seconds(2);
  Duration address_after{0};
  Duration shutting_down = std::chrono::seconds(2);
  std::string next_dies_of;  // the reason with which the next instance ends in place of running
  int page_size = 1000;

 private:
  std::string Answer(const std::string& action, const Parameters& parameters);
  std::string RunInstances(const Parameters& parameters);
  std::string DescribeInstances(const Parameters& parameters);
  std::string TerminateInstances(const Parameters& parameters);
  std::string AllocateHosts(const Parameters& parameters);
  std::string DescribeHosts() const;
  std::string ReleaseHosts(const Parameters& parameters);
  std::string DescribeTypes(const Parameters& parameters);
  std::string DescribeImages(const Parameters& parameters);
  std::string DescribeVolumes(const Parameters& parameters) const;
  std::string ListQuotas(const Parameters& parameters) const;
  std::string CreateFleet(const Parameters& parameters);
  std::string CreateTemplate(const Parameters& parameters);
  std::string DescribeTemplates() const;
  std::string DeleteTemplate(const Parameters& parameters);
  // Why no instance of it can be made; empty: one can.
  std::string RefusalOf(const std::string& type, const std::string& subnet, const std::string& zone) const;
  // The new instance, or the one that was made with the token.
  std::map<std::string, Instance>::iterator Make(const std::string& token, const std::string& type,
                                                 const Parameters& parameters);
  std::string DescribeSpotRequests(const Parameters& parameters) const;
  std::string GetConsole(const Parameters& parameters) const;
  std::string Item(const std::string& id, const Instance& instance) const;

  Loop& loop_;
  int last_id_ = 0;
};

// Refers to an imposter that outlives it.
class Ec2ImposterClient : public net::HttpClient {
 public:
  explicit Ec2ImposterClient(Ec2Imposter& imposter) : imposter_(imposter) {}
  Task<net::HttpReply> Send(net::HttpCall call) override { return imposter_.Send(std::move(call)); }

 private:
  Ec2Imposter& imposter_;
};

}  // namespace nodepool::testing
