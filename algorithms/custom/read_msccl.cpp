#include "algorithms/custom/read_msccl.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <pugixml.hpp>
#include <string_view>

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Buffer;
using sim::Primitive;
using sim::Result;

struct StepType {
  std::string_view name;
  Primitive primitive;
};
constexpr std::array kStepTypes{StepType{"s", Primitive::send},
                                StepType{"r", Primitive::recv},
                                StepType{"rcs", Primitive::recv_copy_send},
                                StepType{"rrs", Primitive::recv_reduce_send},
                                StepType{"rrc", Primitive::recv_reduce_copy},
                                StepType{"rrcs", Primitive::recv_reduce_copy_send},
                                StepType{"re", Primitive::reduce},
                                StepType{"cpy", Primitive::copy},
                                StepType{"nop", Primitive::nop}};

struct CollectiveName {
  std::string_view name;
  sim::Collective collective;
};
constexpr std::array kCollectives{CollectiveName{"allreduce", sim::Collective::all_reduce},
                                  CollectiveName{"allgather", sim::Collective::all_gather},
                                  CollectiveName{"reduce_scatter", sim::Collective::reduce_scatter},
                                  CollectiveName{"reducescatter", sim::Collective::reduce_scatter},
                                  CollectiveName{"broadcast", sim::Collective::broadcast},
                                  CollectiveName{"reduce", sim::Collective::reduce},
                                  CollectiveName{"alltoall", sim::Collective::all_to_all},
                                  CollectiveName{"gather", sim::Collective::gather},
                                  CollectiveName{"scatter", sim::Collective::scatter}};

class MscclReader {
 public:
  MscclReader(const std::string& file, const std::string& text) : text_(text) {
    custom_.file = file;
  }

  Result<CustomSchedule> read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) return wrong_at(parsed.offset, std::string("not XML: ") + parsed.description());
    const pugi::xml_node algo = document.child("algo");
    if (!algo) return bad_input("no <algo> in the file", custom_.file);
    RAILYARD_TRY(read_algo(algo));
    for (const pugi::xml_node gpu : algo.children("gpu")) RAILYARD_TRY(read_gpu(gpu));
    RAILYARD_TRY(check_structure(custom_));
    RAILYARD_TRY(check_buffers(algo));
    return std::move(custom_);
  }

 private:
  [[nodiscard]] std::uint32_t line_at(std::ptrdiff_t offset) const {
    const auto end = std::min<std::size_t>(
        text_.size(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)));
    return 1 + static_cast<std::uint32_t>(std::count(
                   text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  }
  [[nodiscard]] sim::Error wrong_at(std::ptrdiff_t offset, const std::string& what) const {
    return bad_input(what, custom_.file + ":" + std::to_string(line_at(offset)));
  }
  [[nodiscard]] sim::Error wrong(const pugi::xml_node& node, const std::string& what) const {
    return wrong_at(node.offset_debug(), "<" + std::string(node.name()) + ">: " + what);
  }

  // A whole number from `least` on.
  Result<std::int32_t> number(const pugi::xml_node& node, const char* name,
                              std::int32_t least) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return wrong(node, "attribute '" + std::string(name) + "' is missing");
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(attribute.value(), &end, 10);
    const bool whole = end != attribute.value() && *end == '\0' && errno == 0;
    if (!whole || value < least || value > std::numeric_limits<std::int32_t>::max())
      return wrong(node, "'" + std::string(name) + "' is '" + attribute.value() +
                             "'; expected a whole number from " + std::to_string(least) + " on");
    return static_cast<std::int32_t>(value);
  }
  Result<std::uint32_t> count(const pugi::xml_node& node, const char* name) const {
    RAILYARD_ASSIGN(const std::int32_t value, number(node, name, 0));
    return static_cast<std::uint32_t>(value);
  }

  Result<void> read_algo(const pugi::xml_node& algo) {
    custom_.name = algo.attribute("name").value();
    RAILYARD_ASSIGN(custom_.ranks, count(algo, "ngpus"));
    RAILYARD_ASSIGN(custom_.chunks, count(algo, "nchunksperloop"));
    const std::string coll = algo.attribute("coll").value();
    const auto found = std::ranges::find(kCollectives, coll, &CollectiveName::name);
    custom_.any_collective = coll == "custom";
    if (found == kCollectives.end() && !custom_.any_collective)
      return wrong(algo, "unknown collective '" + coll +
                             "'; expected allreduce, allgather, reduce_scatter, broadcast, reduce, "
                             "alltoall, gather, scatter or custom");
    if (!custom_.any_collective) custom_.collective = found->collective;
    const auto protocol = sim::parse_enum<sim::Protocol>(algo.attribute("proto").value());
    if (!protocol.ok()) return wrong(algo, protocol.error().message);
    custom_.protocol = protocol.value();
    RAILYARD_ASSIGN(const std::uint32_t in_place, count(algo, "inplace"));
    custom_.in_place = in_place != 0;
    return {};
  }

  Result<void> read_gpu(const pugi::xml_node& gpu) {
    RAILYARD_ASSIGN(const std::uint32_t rank, count(gpu, "id"));
    RAILYARD_ASSIGN(const std::uint32_t scratch, count(gpu, "s_chunks"));
    custom_.scratch = std::max(custom_.scratch, scratch);
    for (const pugi::xml_node tb : gpu.children("tb")) {
      CustomBlock block;
      block.rank = rank;
      block.line = line_at(tb.offset_debug());
      RAILYARD_ASSIGN(block.id, count(tb, "id"));
      RAILYARD_ASSIGN(block.channel, count(tb, "chan"));
      RAILYARD_ASSIGN(block.send_to, number(tb, "send", -1));
      RAILYARD_ASSIGN(block.recv_from, number(tb, "recv", -1));
      for (const pugi::xml_node step : tb.children("step")) RAILYARD_TRY(read_step(step, block));
      custom_.blocks.push_back(std::move(block));
    }
    return {};
  }

  Result<CustomPlace> place(const pugi::xml_node& step, const char* buffer,
                            const char* offset) const {
    CustomPlace place;
    const std::string name = step.attribute(buffer).value();
    if (name == "i")
      place.buffer = Buffer::input;
    else if (name == "o")
      place.buffer = Buffer::output;
    else if (name == "s")
      place.buffer = Buffer::scratch;
    else
      return wrong(step, "'" + std::string(buffer) + "' is '" + name + "'; expected i, o or s");
    RAILYARD_ASSIGN(place.chunk, count(step, offset));
    return place;
  }

  Result<void> read_step(const pugi::xml_node& node, CustomBlock& block) {
    CustomStep step;
    step.line = line_at(node.offset_debug());
    RAILYARD_ASSIGN(const std::uint32_t index, count(node, "s"));
    if (index != block.steps.size())
      return wrong(node, "step " + std::to_string(index) + "; expected " +
                             std::to_string(block.steps.size()) + ", steps are in order");
    const std::string type = node.attribute("type").value();
    const auto found = std::ranges::find(kStepTypes, type, &StepType::name);
    if (found == kStepTypes.end())
      return wrong(
          node, "unknown type '" + type + "'; expected s, r, rcs, rrs, rrc, rrcs, re, cpy or nop");
    step.primitive = found->primitive;
    if (sim::reads_source(step.primitive)) {
      RAILYARD_ASSIGN(step.source, place(node, "srcbuf", "srcoff"));
    }
    if (sim::writes_target(step.primitive)) {
      RAILYARD_ASSIGN(step.target, place(node, "dstbuf", "dstoff"));
    }
    if (step.primitive != Primitive::nop) {
      RAILYARD_ASSIGN(step.count, count(node, "cnt"));
    }
    RAILYARD_ASSIGN(const std::int32_t depid, number(node, "depid", -1));
    RAILYARD_ASSIGN(const std::int32_t deps, number(node, "deps", -1));
    if (depid >= 0 && deps >= 0 && static_cast<std::uint32_t>(depid) != block.id)
      step.after.push_back({static_cast<std::uint32_t>(depid), static_cast<std::uint32_t>(deps)});
    block.steps.push_back(std::move(step));
    return {};
  }

  // The chunk counts of the file against what the collective gives every rank.
  Result<void> check_buffers(const pugi::xml_node& algo) const {
    if (custom_.any_collective) return {};
    const std::uint32_t whole = custom_.chunks;
    std::uint32_t input = whole;
    std::uint32_t output = whole;
    if (custom_.collective == sim::Collective::all_gather) input = whole / custom_.ranks;
    if (custom_.collective == sim::Collective::reduce_scatter) output = whole / custom_.ranks;
    const auto check = [&](const pugi::xml_node& gpu, const char* name,
                           std::uint32_t expected) -> Result<void> {
      // In place, files give 0 for the buffer that is not named.
      const pugi::xml_attribute attribute = gpu.attribute(name);
      if (!attribute) return {};
      RAILYARD_ASSIGN(const std::uint32_t chunks, count(gpu, name));
      if (chunks == expected || chunks == 0) return {};
      return wrong(gpu, "'" + std::string(name) + "' is " + std::to_string(chunks) + "; expected " +
                            std::to_string(expected));
    };
    for (const pugi::xml_node gpu : algo.children("gpu")) {
      RAILYARD_TRY(check(gpu, "i_chunks", input));
      RAILYARD_TRY(check(gpu, "o_chunks", output));
    }
    return {};
  }

  const std::string& text_;
  CustomSchedule custom_;
};

}  // namespace

Result<CustomSchedule> read_msccl(const std::string& file, const std::string& text) {
  return MscclReader(file, text).read();
}

}  // namespace railyard::algorithms
