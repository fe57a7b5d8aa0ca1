// One field table per parameter struct: the YAML reader, the writer, --set and the documentation
// all walk the same list, so a parameter is added in one place.
//
//   template <> struct FieldTable<LinkParameters> {
//     static constexpr auto fields = std::tuple{
//         Field{"efficiency", &LinkParameters::efficiency, "achievable share of the line rate"},
//         ...};
//   };
//   for_each_field<LinkParameters>([](const auto& field) { ... params.*field.member ... });
#pragma once

#include <string_view>
#include <tuple>

namespace railyard::sim {

template <typename Struct, typename Member>
struct Field {
  std::string_view name;
  Member Struct::*member;
  std::string_view doc;
};
template <typename Struct, typename Member>
Field(const char*, Member Struct::*, const char*) -> Field<Struct, Member>;

template <typename Struct>
struct FieldTable;  // specialised beside each struct

template <typename Struct, typename Visitor>
constexpr void for_each_field(Visitor&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, FieldTable<Struct>::fields);
}

}  // namespace railyard::sim
