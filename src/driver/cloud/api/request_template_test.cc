#include "driver/cloud/api/request_template.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace nodepool::driver::cloud::api {
namespace {

// LA-27
TEST(Templates, AreFilledAsPythonDoes) {
  NodeRequest request;
  request.requestor = "zuul";
  request.requestor_data = boost::json::parse(R"({"a": {"b": [1, "x'y", null, true]}})");
  request.node_types = {LabelName("one"), LabelName("two")};
  RequestId id("100-1");
  auto fill = [&](const std::string& text) { return FillTemplate(text, id, request); };
  EXPECT_EQ(fill("{request.id} {request.requestor} {request.tenant_name}"), "100-1 zuul None");
  EXPECT_EQ(fill("{request.labels} {request.labels[1]}"), "['one', 'two'] two");
  EXPECT_EQ(fill("{request.requestor_data[a][b]}"), R"([1, "x'y", None, True])");
  EXPECT_EQ(fill("{{{request.relative_priority}}}"), "{0}");
  for (const char* broken :
       {"{", "}", "{x}", "{request.x}", "{request.labels[9]}", "{request.labels[", "{}"}) {
    EXPECT_THROW(fill(broken), Error) << broken;
  }
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
