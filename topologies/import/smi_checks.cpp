// check() of a matrix: what a person who runs the machine should look at.
#include <fmt/format.h>

#include <algorithm>

#include "topologies/import/smi_topo.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

constexpr std::size_t kMostOfAKind = 5;

std::string text_of(SmiCell cell) {
  std::string text(sim::to_text(cell.path));
  if (cell.path == SmiPath::nvlink) text += std::to_string(cell.nvlinks);
  return text;
}

class Checker {
 public:
  explicit Checker(const SmiMatrix& matrix) : m_(matrix), n_(matrix.labels.size()) {}

  std::vector<std::string> run() {
    check_mirror();
    check_nvlinks();
    check_tree();
    check_numa();
    check_nics();
    return std::move(found_);
  }

 private:
  // Reports the first few of a kind, then how many more there are.
  void add(const std::vector<std::string>& kind, const std::string& what) {
    for (std::size_t i = 0; i < kind.size() && i < kMostOfAKind; ++i) found_.push_back(kind[i]);
    if (kind.size() > kMostOfAKind)
      found_.push_back(fmt::format("{} more {}", kind.size() - kMostOfAKind, what));
  }

  [[nodiscard]] std::string pair(std::size_t a, std::size_t b) const {
    return m_.labels[a] + "-" + m_.labels[b];
  }

  void check_mirror() {
    std::vector<std::string> one_way;
    std::vector<std::string> unequal;
    for (std::size_t a = 0; a < n_; ++a)
      for (std::size_t b = a + 1; b < n_; ++b) {
        const SmiCell there = m_.cell(a, b);
        const SmiCell back = m_.cell(b, a);
        if (there == back) continue;
        const bool nvlink = (there.path == SmiPath::nvlink) != (back.path == SmiPath::nvlink);
        (nvlink ? one_way : unequal)
            .push_back(fmt::format("{}: {} one way and {} back{}", pair(a, b), text_of(there),
                                   text_of(back), nvlink ? ": NVLinks in one direction only" : ""));
      }
    add(one_way, "one-way NVLinks");
    add(unequal, "pairs whose two cells differ");
  }

  void check_nvlinks() {
    std::vector<std::uint32_t> links(m_.gpus);
    std::uint8_t most = 0;
    for (std::size_t a = 0; a < m_.gpus; ++a)
      for (std::size_t b = 0; b < m_.gpus; ++b) {
        links[a] += m_.cell(a, b).nvlinks;
        most = std::max(most, m_.cell(a, b).nvlinks);
      }
    if (most == 0) return;
    // Up to two links a pair is a mesh of unequal pairs by design (NV1 and NV2 of a cube mesh).
    if (most > 2) {
      check_counts(most);
    } else {
      check_totals(links);
    }
    for (std::size_t a = 0; a < m_.gpus; ++a)
      if (links[a] == 0)
        found_.push_back(fmt::format("{} has no NVLink although other GPUs have up to NV{}",
                                     m_.labels[a], most));
  }

  void check_counts(std::uint8_t most) {
    std::vector<std::string> fewer;
    for (std::size_t a = 0; a < m_.gpus; ++a)
      for (std::size_t b = a + 1; b < m_.gpus; ++b)
        if (const std::uint8_t n = m_.cell(a, b).nvlinks; n != 0 && n < most)
          fewer.push_back(fmt::format("{}: NV{} beside NV{} elsewhere: {} link{} missing",
                                      pair(a, b), n, most, most - n, most - n == 1 ? "" : "s"));
    add(fewer, "pairs with fewer NVLinks");
  }

  void check_totals(const std::vector<std::uint32_t>& links) {
    const std::uint32_t most = *std::max_element(links.begin(), links.end());
    for (std::size_t a = 0; a < links.size(); ++a)
      if (links[a] != 0 && links[a] < most)
        found_.push_back(fmt::format("{} has {} NVLinks in all, other GPUs have {}", m_.labels[a],
                                     links[a], most));
  }

  [[nodiscard]] bool is_pci(std::size_t a, std::size_t b) const {
    return m_.cell(a, b).path >= SmiPath::pix;
  }

  // A device that one of a PIX pair sees otherwise than the other.
  [[nodiscard]] std::string differs_at(std::size_t a, std::size_t b) const {
    for (std::size_t c = 0; c < n_; ++c)
      if (c != a && c != b && is_pci(a, c) && is_pci(b, c) &&
          m_.cell(a, c).path != m_.cell(b, c).path)
        return fmt::format("{} is PIX, but {} is {} and {} is {}: no PCI tree", pair(a, b),
                           pair(a, c), text_of(m_.cell(a, c)), pair(b, c), text_of(m_.cell(b, c)));
    return {};
  }

  // In a tree the two longer of three paths are of one type. Only PIX triples are tried for each
  // pair: a pair behind one bridge sees all others alike, whatever the tree.
  void check_tree() {
    std::vector<std::string> broken;
    std::size_t tried = 0;
    for (std::size_t a = 0; a < n_; ++a)
      for (std::size_t b = a + 1; b < n_ && tried < kMostTried; ++b) {
        if (m_.cell(a, b).path != SmiPath::pix) continue;
        ++tried;
        const std::string why = differs_at(a, b);
        if (!why.empty()) broken.push_back(why);
      }
    add(broken, "pairs behind one bridge that differ elsewhere");
  }

  void check_numa() {
    std::vector<std::string> odd;
    for (std::size_t a = 0; a < m_.gpus; ++a)
      for (std::size_t b = a + 1; b < m_.gpus; ++b) {
        const std::string& of_a = m_.affinity[a].numa;
        const std::string& of_b = m_.affinity[b].numa;
        if (!to_number(of_a) || !to_number(of_b) || !is_pci(a, b)) continue;
        const bool across = m_.cell(a, b).path == SmiPath::sys;
        if (across == (of_a != of_b)) continue;
        odd.push_back(fmt::format("{} is {}, but their NUMA affinities are {} and {}", pair(a, b),
                                  text_of(m_.cell(a, b)), of_a, of_b));
      }
    add(odd, "pairs whose NUMA affinities contradict their path");
  }

  // 0: below the same PCIe switches, 1: at the same CPU, 2: farther.
  [[nodiscard]] int distance(std::size_t gpu, std::size_t nic) const {
    switch (m_.cell(gpu, nic).path) {
      case SmiPath::pix:
      case SmiPath::pxb: return 0;
      case SmiPath::phb:
      case SmiPath::node: return 1;
      default: return 2;
    }
  }

  // What more than half of the GPUs have; -1 if they do not agree.
  static int usual(const std::vector<int>& values) {
    for (const int value : values)
      if (2 * std::count(values.begin(), values.end(), value) >
          static_cast<std::ptrdiff_t>(values.size()))
        return value;
    return -1;
  }

  // GPUs whose nearest NIC is farther, or whose NICs are fewer, than most GPUs'.
  void check_nics() {
    if (m_.nics() == 0) return;
    std::vector<int> nearest(m_.gpus, 2);
    std::vector<int> near(m_.gpus, 0);
    for (std::size_t gpu = 0; gpu < m_.gpus; ++gpu)
      for (std::size_t nic = m_.gpus; nic < n_; ++nic) {
        nearest[gpu] = std::min(nearest[gpu], distance(gpu, nic));
        near[gpu] += distance(gpu, nic) == 0 ? 1 : 0;
      }
    static constexpr std::string_view kWhere[] = {"below its PCIe switch", "at its CPU",
                                                  "anywhere"};
    const int where = usual(nearest);
    const int count = usual(near);
    std::vector<std::string> far;
    std::vector<std::string> fewer;
    for (std::size_t gpu = 0; gpu < m_.gpus; ++gpu) {
      if (where >= 0 && nearest[gpu] > where)
        far.push_back(
            fmt::format("{} has no NIC {}, most GPUs have one", m_.labels[gpu], kWhere[where]));
      else if (near[gpu] < count)
        fewer.push_back(
            fmt::format("{} has {} NICs below its PCIe switch, most GPUs have {}: a rail "
                        "is missing",
                        m_.labels[gpu], near[gpu], count));
    }
    add(far, "GPUs far from any NIC");
    add(fewer, "GPUs with fewer NICs");
  }

  static constexpr std::size_t kMostTried = 20'000;  // x labels steps
  const SmiMatrix& m_;
  std::size_t n_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check(const SmiMatrix& matrix) { return Checker(matrix).run(); }

}  // namespace railyard::topologies
