#pragma once

#include <boost/json/object.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "async/loop.h"
#include "net/http/http_client.h"

namespace nodepool::testing {

// An in-process Google Cloud: the calls that the driver makes, with answers in the form of real ones. It
// records every call and simulates the faults that a test wants. For tests in virtual time.
class GceImposter : public net::HttpClient {
 public:
  explicit GceImposter(Loop& loop) : loop_(loop) {}

  Task<net::HttpReply> Send(net::HttpCall call) override;

  // --- Recorded calls ---------------------------------------------------------
  struct Call {
    std::string action;  // "instances.insert", "token"
    std::string url;
    std::string query;
    boost::json::object body;
    net::HttpHeaders headers;
    SteadyTime when;
  };
  std::vector<Call> calls;
  int Count(const std::string& action) const;
  const Call& Last(const std::string& action) const;  // throws without one

  // --- Faults -----------------------------------------------------------------
  struct Fault {
    std::string action;  // "*": any
    int status = 400;    // 0: the connection breaks
    std::string reason;
    std::string message = "no";
    int times = 1;
    bool is_after = false;  // the call is carried out, and its answer replaced
    std::string body = "";  // in place of Google's answer
  };
  std::deque<Fault> faults;
  bool is_silent = false;  // does not answer

  // --- Contents ---------------------------------------------------------------
  struct Instance {
    boost::json::object body;  // of its insert
    std::string number;
    std::string zone;
    SteadyTime visible{};
    SteadyTime running{};
    SteadyTime gone = SteadyTime::max();
    std::string status = "";  // in place of the one that the times say
    std::string error = "";   // the code with which its insert fails, when it would run
  };
  std::map<std::string, Instance> instances;                                    // by "zone/name"
  std::map<std::string, int> types = {{"e2-medium", 2}, {"n2-standard-2", 2}};  // virtual CPUs
  std::map<std::string, std::pair<double, double>> quotas = {{"CPUS", {1000, 0}}, {"INSTANCES", {1000, 0}}};
  std::map<std::string, std::string> families = {{"debian-12", "debian-12-v1"}};
  std::map<std::string, std::string> refused_zones;  // the code with which inserts there fail
  boost::json::array events;                         // operations of preemption
  std::map<std::string, boost::json::object> images;
  struct Object {
    std::string bytes;
    boost::json::object about;
    bool is_complete = false;
  };
  std::map<std::string, Object> objects;       // by name
  std::map<std::string, std::string> uploads;  // names of objects, by the upload's id

  Duration latency = std::chrono::milliseconds(10);
  Duration visible_after{0};
  Duration starting = std::chrono::seconds(2);
  Duration stopping = std::chrono::seconds(2);
  int page_size = 500;
  double token_seconds = 3600;

 private:
  struct Request {
    std::string method;
    std::vector<std::string> path;  // below the project, or of the bucket
    std::map<std::string, std::string> query;
    boost::json::object body;
    const net::HttpCall* call = nullptr;
  };

  net::HttpReply Answer(const std::string& action, const Request& request);
  net::HttpReply Compute(const std::string& action, const Request& request);
  net::HttpReply Storage(const std::string& action, const Request& request);
  boost::json::object Insert(const Request& request);
  boost::json::object Delete(const Request& request);
  boost::json::object List(const Request& request);
  boost::json::object Shown(const Instance& instance) const;
  boost::json::object InsertImage(const Request& request);
  net::HttpReply PutPart(const Request& request);
  Instance& Find(const Request& request);
  boost::json::object NewOperation(const std::string& target);
  void Settle();

  Loop& loop_;
  int last_number_ = 1000;
  std::map<std::string, boost::json::object> operations_;  // by name
  std::map<std::string, std::string> repeated_;            // operations, by requestId
};

// Refers to an imposter that outlives it.
class GceImposterClient : public net::HttpClient {
 public:
  explicit GceImposterClient(GceImposter& imposter) : imposter_(imposter) {}
  Task<net::HttpReply> Send(net::HttpCall call) override { return imposter_.Send(std::move(call)); }

 private:
  GceImposter& imposter_;
};

}  // namespace nodepool::testing
