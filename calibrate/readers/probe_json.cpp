#include "calibrate/readers/probe_json.h"

#include <algorithm>
#include <cmath>

namespace railyard::calibrate::probe_json {

using nlohmann::json;

sim::Result<json> parse(std::string_view text, std::string_view name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const std::size_t end = std::min(error.byte, text.size());
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<long>(end), '\n');
    const bool cut_off = error.byte >= text.size();
    return sim::bad_input(cut_off ? "the JSON breaks off" : "this is not JSON",
                          std::string(name) + ":" + std::to_string(newlines + 1));
  } catch (const json::exception&) {
    return sim::bad_input("this is not JSON", std::string(name));  // a number out of range
  }
}

std::string quoted(const std::string& text) { return json(text).dump(); }

bool Item::has(const char* key) const { return value_->is_object() && value_->contains(key); }

sim::Result<const json*> Item::find(const char* key) const {
  if (!value_->is_object()) return error("not an object");
  const auto found = value_->find(key);
  if (found == value_->end()) return error("\"" + std::string(key) + "\" is missing");
  return &*found;
}

sim::Result<std::string> Item::as_text() const {
  if (!value_->is_string()) return error("not a text");
  return value_->get<std::string>();
}

sim::Result<std::string> Item::text(const char* key) const {
  RAILYARD_ASSIGN(const json* const value, find(key));
  return Item(*value, place_of(key)).as_text();
}

sim::Result<double> Item::number(const char* key) const {
  RAILYARD_ASSIGN(const json* const value, find(key));
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    return sim::bad_input("not a number", place_of(key));
  return value->get<double>();
}

sim::Result<std::int64_t> Item::count(const char* key) const {
  RAILYARD_ASSIGN(const json* const value, find(key));
  const bool fits = value->is_number_integer() && value->get<std::int64_t>() >= 0;
  if (!fits) return sim::bad_input("not a whole number of 0 or more", place_of(key));
  return value->get<std::int64_t>();
}

sim::Result<std::map<std::string, std::string>> Item::labels(const char* key) const {
  RAILYARD_ASSIGN(const Item item, object(key));
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : item.value_->items()) {
    if (!value.is_string()) return sim::bad_input("not a text", item.place_of(quoted(name)));
    labels[name] = value.get<std::string>();
  }
  return labels;
}

sim::Result<Item> Item::object(const char* key) const {
  RAILYARD_ASSIGN(const json* const value, find(key));
  if (!value->is_object()) return sim::bad_input("not an object", place_of(key));
  return Item(*value, place_of(key));
}

sim::Result<std::vector<Item>> Item::list(const char* key) const {
  RAILYARD_ASSIGN(const json* const value, find(key));
  if (!value->is_array()) return sim::bad_input("not a list", place_of(key));
  std::vector<Item> items;
  for (std::size_t i = 0; i < value->size(); ++i)
    items.emplace_back((*value)[i], place_of(key) + "[" + std::to_string(i) + "]");
  return items;
}

}  // namespace railyard::calibrate::probe_json
