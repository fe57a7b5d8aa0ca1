#!/usr/bin/env python3
"""Checks the shape of the tree: arrows, budgets and the amount of tests.

    check_structure.py arrows|budgets|tests_ratio [--root DIR]

arrows       every #include, and every railyard:: library a folder links, against the table below
budgets      sizes of functions, files and headers; parameters, nesting, inheritance
tests_ratio  lines of tests per line of code

A finding is one line, `file:line: rule: what`, and exit status 1. exceptions.txt beside this file
lists what is allowed to exceed a budget, with the reason; an exception nothing needs is a finding.
"""

import argparse
import math
import pathlib
import re
import sys

import cpp_scan

CODE = ("sim", "topologies", "algorithms", "models", "calibrate", "scenarios", "tools")
SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".py")
CPP = (".cpp", ".h", ".cu", ".cuh")

# The project folders whose headers a folder may include, besides its own.
ARROWS = {
    "sim": (),
    "topologies": ("sim",),
    "algorithms": ("sim",),
    "models": ("sim",),
    "calibrate": ("sim", "topologies", "algorithms", "models"),
    "scenarios": ("sim", "topologies", "algorithms", "models"),
    "tools": ("sim", "topologies", "algorithms", "models", "calibrate", "scenarios"),
}

# Where a third-party header may be included: (pattern of the header, patterns of the files).
FENCES = (
    (r"fmt/", (r"",)),
    (r"yaml-cpp/", (r"scenarios/.*\.cpp$",
                    r"topologies/import/.*\.cpp$")),  # SLURM's topology.yaml
    (r"boost/", (r"(topologies|algorithms)/.*\.cpp$",)),
    (r"pugixml\.hpp$", (r"topologies/.*\.cpp$",
                       r"algorithms/custom/.*\.cpp$")),  # MSCCL files are schedules
    (r"(unsupported/)?Eigen/", (r"(models|calibrate)/",)),
    (r"CLI/", (r"tools/",)),
    (r"nlohmann/", (r"tools/", r"calibrate/readers/")),
    (r"simdjson\.h$", (r"calibrate/readers/",)),
    (r"(oneapi/)?tbb/", (r"tools/",)),
    (r"(cuda|nccl|nvml|gloo/|infiniband/|rdma/)", (r"calibrate/probes/",)),
    (r"(sys|arpa|net|netinet|linux)/", (r"",)),
)

BUDGET = {"function-lines": 70, "file-lines": 500, "header-lines": 250, "parameters": 5,
          "nesting": 3, "inheritance": 2}
FUNCTION_LINES_P95 = 40
TESTS_RATIO = 0.4

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


class Finding:
    def __init__(self, path, line, rule, what, name=""):
        self.path, self.line, self.rule, self.what, self.name = path, line, rule, what, name

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


def files(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
            if path.is_file() and path.suffix in suffixes and not hidden:
                yield path.relative_to(root).as_posix(), path.read_text(errors="replace")


# ---- arrows -------------------------------------------------------------------------------------

def allowed_folders(path):
    """The folders whose headers a file may include. Tests of a layer see that layer and below."""
    parts = path.split("/")
    if parts[0] != "tests":
        return (parts[0],) + ARROWS[parts[0]]
    layer = parts[1] if len(parts) > 2 else ""
    return ("tests", layer) + ARROWS[layer] if layer in ARROWS else ("tests",) + CODE


def check_project_include(path, line, header):
    folder = header.split("/")[0]
    if "/" not in header or folder not in CODE + ("tests",):
        return [Finding(path, line, "arrows",
                        f'"{header}" is not written from the repository root')]
    if folder not in allowed_folders(path):
        return [Finding(path, line, "arrows",
                        f'{path.split("/")[0]}/ must not include {folder}/ ("{header}")')]
    return []


def check_system_include(path, line, header):
    if path.startswith("tests/"):
        return []
    for pattern, places in FENCES:
        if re.match(pattern, header):
            if any(re.match(place, path) for place in places):
                return []
            return [Finding(path, line, "arrows", f"<{header}> is not allowed here; only in files "
                            f"that match {' or '.join(places)}")]
    if "/" in header or header.endswith(".hpp") or header.split("/")[0] in CODE:
        return [Finding(path, line, "arrows", f"<{header}> is in no third-party fence; add it to "
                        "FENCES in tests/lint/check_structure.py if it is wanted")]
    return []


def check_links(root):
    found = []
    for folder in ARROWS:
        listing = root / folder / "CMakeLists.txt"
        text = listing.read_text() if listing.exists() else ""
        for number, line in enumerate(text.split("\n"), 1):
            for target in re.findall(r"railyard(?:::|_)([a-z]+)", line.split("#")[0]):
                if target in CODE and target != folder and target not in ARROWS[folder]:
                    found.append(Finding(f"{folder}/CMakeLists.txt", number, "arrows",
                                         f"{folder}/ must not link railyard::{target}"))
    return found


def check_arrows(root):
    found = check_links(root)
    for path, text in files(root, CODE + ("tests",), CPP):
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if match and match.group(1):
                found += check_project_include(path, number, match.group(1))
            elif match:
                found += check_system_include(path, number, match.group(2))
    return found


# ---- budgets ------------------------------------------------------------------------------------

def over(path, line, rule, value, what, name=""):
    if value <= BUDGET[rule]:
        return []
    return [Finding(path, line, rule, f"{what}: {value}, at most {BUDGET[rule]}", name)]


def check_file(path, text):
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    if path.endswith((".h", ".cuh")) and not path.startswith("tests/"):
        return over(path, 1, "header-lines", lines, "lines in a header")
    return over(path, 1, "file-lines", lines, "lines in a file")


def check_functions(path, scan):
    found = []
    for function in scan.functions:
        name = function.name
        found += over(path, function.line, "function-lines", function.lines, f"lines in {name}",
                      name)
        found += over(path, function.line, "parameters", function.parameters,
                      f"parameters of {name}", name)
        found += over(path, function.nesting_line, "nesting", function.nesting,
                      f"levels of control flow in {name}", name)
    return found


def inheritance_depth(name, bases, seen=()):
    if name in seen or not bases.get(name):
        return 0
    return 1 + max(inheritance_depth(base, bases, seen + (name,)) for base in bases[name])


def check_inheritance(classes):
    bases = {}
    for _, item in classes:
        bases.setdefault(item.name, []).extend(item.bases)
    found = []
    for path, item in classes:
        if item.bases:
            found += over(path, item.line, "inheritance", inheritance_depth(item.name, bases),
                          f"levels of inheritance of {item.name}", item.name)
    return found


def percentile(values, fraction):
    return sorted(values)[math.ceil(fraction * len(values)) - 1] if values else 0


def check_budgets(root):
    found, classes, lengths = [], [], []
    for path, text in files(root, CODE + ("tests",), SUFFIXES):
        found += check_file(path, text)
        if path.startswith("tests/") or not path.endswith(CPP):
            continue
        scan = cpp_scan.scan(text)
        if not scan.balanced:
            found.append(Finding(path, 1, "scan", "braces do not balance for this scanner"))
        found += check_functions(path, scan)
        classes += [(path, item) for item in scan.classes]
        lengths += [function.lines for function in scan.functions if function.has_body]
    found += check_inheritance(classes)
    p95 = percentile(lengths, 0.95)
    if p95 > FUNCTION_LINES_P95:
        found.append(Finding(".", 1, "function-lines-p95",
                             f"95 % of the functions: up to {p95} lines, "
                             f"at most {FUNCTION_LINES_P95}"))
    print(f"{len(lengths)} functions, median {percentile(lengths, 0.5)} lines, p95 {p95}, "
          f"longest {max(lengths, default=0)}")
    return apply_exceptions(found, root / "tests/lint/exceptions.txt")


def apply_exceptions(found, listing):
    """Drops the findings that are listed; adds one for each line that is malformed or stale."""
    path = "tests/lint/exceptions.txt"
    for number, line in enumerate(listing.read_text().split("\n") if listing.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not all(fields):
            found.append(Finding(path, number, "exceptions", "want: rule | file | name | reason"))
            continue
        rule, file, name, _ = fields
        kept = [f for f in found if (f.rule, f.path, f.name or "-") != (rule, file, name)]
        if len(kept) == len(found):
            kept.append(Finding(path, number, "exceptions", f"stale: {rule} of {name} in {file} "
                                "is within its budget; delete this line"))
        found = kept
    return found


# ---- tests : code -------------------------------------------------------------------------------

def count_lines(root, folders):
    return sum(sum(1 for line in text.split("\n") if line.strip())
               for _, text in files(root, folders, SUFFIXES))


def check_tests_ratio(root):
    tests, code = count_lines(root, ("tests",)), count_lines(root, CODE)
    ratio = tests / code if code else math.inf
    print(f"tests : code = {tests} : {code} non-blank lines = {ratio:.3f}")
    if ratio < TESTS_RATIO:
        return [Finding("tests", 1, "tests_ratio", f"{ratio:.3f}, at least {TESTS_RATIO}")]
    return []


CHECKS = {"arrows": check_arrows, "budgets": check_budgets, "tests_ratio": check_tests_ratio}


def main():
    parser = argparse.ArgumentParser(description="check the shape of the tree")
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    found = CHECKS[arguments.check](arguments.root)
    for finding in sorted(found, key=lambda f: (f.path, f.line)):
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
