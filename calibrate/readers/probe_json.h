// A JSON value that knows where it stands, so that what is wrong can be said with its place:
// "tcp.json: rows[3].time_us: p10: not a number". Only calibrate/readers/probe.cpp uses it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::calibrate::probe_json {

// The document, or what is wrong with the text and in which line.
sim::Result<nlohmann::json> parse(std::string_view text, std::string_view name);

std::string quoted(const std::string& text);  // on one line, whatever it holds

// Refers to a value of a document that must outlive it.
class Item {
 public:
  Item(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] sim::Error error(const std::string& what) const {
    return sim::bad_input(what, where_);
  }

  [[nodiscard]] sim::Result<std::string> as_text() const;
  [[nodiscard]] sim::Result<std::string> text(const char* key) const;
  [[nodiscard]] sim::Result<double> number(const char* key) const;       // finite
  [[nodiscard]] sim::Result<std::int64_t> count(const char* key) const;  // 0 or more
  [[nodiscard]] sim::Result<std::map<std::string, std::string>> labels(const char* key) const;
  [[nodiscard]] sim::Result<Item> object(const char* key) const;
  [[nodiscard]] sim::Result<std::vector<Item>> list(const char* key) const;

 private:
  [[nodiscard]] sim::Result<const nlohmann::json*> find(const char* key) const;
  [[nodiscard]] std::string place_of(const std::string& key) const { return where_ + ": " + key; }

  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace railyard::calibrate::probe_json
