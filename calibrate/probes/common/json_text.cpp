#include "calibrate/probes/common/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace railyard::probe {
namespace {

// Length of the well-formed UTF-8 sequence at `position`, 0 when there is none (RFC 3629).
std::size_t utf8_length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(position);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;  // bounds of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || position + length > text.size()) return 0;
  if (lead == 0xE0) low = 0xA0;   // else overlong
  if (lead == 0xED) high = 0x9F;  // else a surrogate
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (byte(position + 1) < low || byte(position + 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(position + i) < 0x80 || byte(position + i) > 0xBF) return 0;
  return length;
}

void append_ascii(std::string& out, char character) {
  switch (character) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(character) >= 0x20) {
    out += character;
    return;
  }
  char escaped[8];
  std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(character));
  out += escaped;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 1) append_ascii(out, text[i]);
    if (length > 1) out += text.substr(i, length);
    if (length == 0) out += "\\ufffd";
    i += length == 0 ? 1 : length;
  }
  return out + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "null";
}

}  // namespace railyard::probe
