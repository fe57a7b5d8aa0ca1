"""check_structure.py catches each kind of violation, and nothing in clean code."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import check_structure
import cpp_scan


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def check(self, name):
        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed):
            return [str(f) for f in check_structure.CHECKS[name](self.root)]

    def assert_one(self, name, start):
        found = self.check(name)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found[0])


class Arrows(Tree):
    def include(self, path, header):
        self.write(path, f"// first line\n#include {header}\n")

    def test_clean_tree(self):
        self.include("sim/a.cpp", '"sim/a.h"')
        self.include("algorithms/nccl/a.cpp", "<boost/graph/graph_traits.hpp>")
        self.include("topologies/a.cpp", "<pugixml.hpp>")
        self.include("calibrate/fit/a.cpp", '"models/a.h"')
        self.include("scenarios/a.cpp", "<yaml-cpp/yaml.h>")
        self.include("tools/cli/a.cpp", '"calibrate/a.h"')
        self.include("models/a.h", "<fmt/format.h>")
        self.include("calibrate/probes/a.cu", "<nccl.h>")
        self.include("tests/tools/a.cpp", '"scenarios/a.h"')
        self.include("sim/b.cpp", "<vector>")
        self.write("calibrate/CMakeLists.txt", "target_link_libraries(x PUBLIC railyard::models)")
        self.assertEqual(self.check("arrows"), [])

    def test_project_arrows(self):
        for path, header in (("sim/a.h", "models/b.h"), ("models/a.h", "algorithms/b.h"),
                             ("topologies/a.h", "scenarios/b.h"),
                             ("calibrate/a.cpp", "scenarios/b.h"),
                             ("scenarios/a.cpp", "calibrate/b.h"),
                             ("tools/a.cpp", "tests/b.h"), ("scenarios/a.cpp", "tools/b.h"),
                             ("tests/sim/a.cpp", "algorithms/b.h")):
            with self.subTest(path=path, header=header):
                self.setUp()
                self.include(path, f'"{header}"')
                self.assert_one("arrows", f"{path}:2: arrows: {path.split('/')[0]}/ must not")

    def test_third_party_fences(self):
        for path, header in (("sim/a.cpp", "yaml-cpp/yaml.h"),
                             ("scenarios/a.h", "yaml-cpp/yaml.h"),
                             ("models/a.cpp", "boost/graph/graph_traits.hpp"),
                             ("topologies/a.h", "boost/config.hpp"),
                             ("topologies/a.h", "pugixml.hpp"),
                             ("sim/a.cpp", "Eigen/Dense"),
                             ("scenarios/a.cpp", "CLI/CLI.hpp"),
                             ("calibrate/fit/a.cpp", "nlohmann/json.hpp"),
                             ("scenarios/a.cpp", "tbb/parallel_for.h"),
                             ("models/a.cpp", "cuda_runtime.h"),
                             ("sim/a.cpp", "absl/strings/str_cat.h")):
            with self.subTest(path=path, header=header):
                self.setUp()
                self.include(path, f"<{header}>")
                self.assert_one("arrows", f"{path}:2: arrows: <{header}> is")

    def test_include_from_the_side(self):
        self.include("sim/a.cpp", '"a.h"')
        self.assert_one("arrows", 'sim/a.cpp:2: arrows: "a.h" is not written from')

    def test_link(self):
        self.write("sim/CMakeLists.txt", "#\ntarget_link_libraries(x PUBLIC railyard::models)\n")
        self.assert_one("arrows", "sim/CMakeLists.txt:2: arrows: sim/ must not link")


class Budgets(Tree):
    def body(self, lines):
        return "void f() {\n" + "  x();\n" * (lines - 2) + "}\n"

    def test_clean_code(self):
        self.write("sim/a.cpp", self.body(70) + self.body(3) * 30)
        self.write("sim/a.h", "int g(int a, int b, int c, int d, int e);\n" * 250)
        self.assertEqual(self.check("budgets"), [])
        self.assertIn("31 functions, median 3 lines, p95 3, longest 70", self.printed.getvalue())

    def test_function_lines(self):
        self.write("sim/a.cpp", "\n" + self.body(71) + self.body(3) * 30)
        self.assert_one("budgets", "sim/a.cpp:2: function-lines: lines in f: 71, at most 70")

    def test_function_lines_p95(self):
        self.write("sim/a.cpp", self.body(41) * 2 + self.body(3) * 18)
        self.assert_one("budgets", ".:1: function-lines-p95: 95 % of the functions: up to 41")

    def test_file_and_header_lines(self):
        self.write("sim/a.cpp", "\n" * 501)
        self.write("tests/sim/a.cpp", "\n" * 501)
        self.write("models/a.h", "\n" * 251)
        self.assertEqual(sorted(self.check("budgets")), [
            "models/a.h:1: header-lines: lines in a header: 251, at most 250",
            "sim/a.cpp:1: file-lines: lines in a file: 501, at most 500",
            "tests/sim/a.cpp:1: file-lines: lines in a file: 501, at most 500"])

    def test_parameters(self):
        six = "int a, std::map<int, int> b, int c = f(1, 2), int d, int e, int f"
        self.write("sim/a.cpp", f"void A::g({six}) {{}}\n")
        self.assert_one("budgets", "sim/a.cpp:1: parameters: parameters of A::g: 6, at most 5")
        self.write("sim/a.cpp", f"class A {{\n  virtual void g({six}) const = 0;\n}};\n")
        self.assert_one("budgets", "sim/a.cpp:2: parameters: parameters of g: 6")
        self.write("sim/a.cpp", f"void h() {{\n  auto g = [&]({six}) {{ return 1; }};\n}}\n")
        self.assert_one("budgets", "sim/a.cpp:2: parameters: parameters of lambda: 6")

    def test_nesting(self):
        self.write("sim/a.cpp", "void f() {\n for (;;) { if (a) { while (b) { x(); } } }\n}\n")
        self.assertEqual(self.check("budgets"), [])
        deep = "void f() {\n for (;;) { if (a) { while (b) {\n if (c) x(); } } }\n}\n"
        self.write("sim/a.cpp", deep)
        self.assert_one("budgets", "sim/a.cpp:3: nesting: levels of control flow in f: 4")
        self.write("sim/a.cpp", "void f() {\n for (;;) if (a) while (b) for (;;) x();\n}\n")
        self.assert_one("budgets", "sim/a.cpp:2: nesting: levels of control flow in f: 4")
        guarded = "void f() { for (;;) { for (;;) { for (;;) { if (a) continue; x(); } } } }\n"
        self.write("sim/a.cpp", guarded)
        self.assertEqual(self.check("budgets"), [])
        chain = "if (a) { x(); } else if (b) { y(); } else { z(); }"
        self.write("sim/a.cpp", f"void f() {{ for (;;) {{ for (;;) {{ {chain} }} }} }}\n")
        self.assertEqual(self.check("budgets"), [])

    def test_inheritance(self):
        self.write("sim/a.h", "class A : public std::logic_error {};\nclass B : public A {};\n")
        self.assertEqual(self.check("budgets"), [])
        self.write("models/b.h", "class C final : public railyard::sim::B {};\n")
        self.assert_one("budgets", "models/b.h:1: inheritance: levels of inheritance of C: 3")

    def test_unbalanced(self):
        self.write("sim/a.cpp", "void f() {\n")
        self.assert_one("budgets", "sim/a.cpp:1: scan: braces do not balance")

    def test_exceptions(self):
        self.write("sim/a.cpp", self.body(71) + self.body(3) * 30)
        listing = "tests/lint/exceptions.txt"
        self.write(listing, "# comment\nfunction-lines | sim/a.cpp | f | a table\n")
        self.assertEqual(self.check("budgets"), [])
        self.write("sim/a.cpp", self.body(70) + self.body(3) * 30)
        self.assert_one("budgets", f"{listing}:2: exceptions: stale: function-lines of f")
        self.write(listing, "function-lines | sim/a.cpp | f |\n")
        self.assert_one("budgets", f"{listing}:1: exceptions: want: rule | file | name | reason")
        self.write(listing, "header-lines | sim/a.h | - | one table\n")
        self.write("sim/a.h", "\n" * 251)
        self.assertEqual(self.check("budgets"), [])


class TestsRatio(Tree):
    def test_ratio(self):
        self.write("sim/a.cpp", "x\n\n" * 100)
        self.write("tests/sim/a.cpp", "x\n" * 30)
        self.write("tests/lint/a.py", "x\n" * 10)
        self.assertEqual(self.check("tests_ratio"), [])
        self.assertEqual(self.printed.getvalue(),
                         "tests : code = 40 : 100 non-blank lines = 0.400\n")
        self.write("tests/lint/a.py", "x\n" * 9)
        self.assert_one("tests_ratio", "tests:1: tests_ratio: 0.390, at least 0.4")


class Scanner(unittest.TestCase):
    def names(self, source):
        scan = cpp_scan.scan(source)
        self.assertTrue(scan.balanced)
        return [function.name for function in scan.functions if function.has_body]

    def test_literals_and_comments(self):
        self.assertEqual(self.names('void f() { a = "}"; b = \'{\'; c = 1\'000; } // {\n'
                                    '/* { */ void g() { d = R"x(}")x"; }\n'), ["f", "g"])

    def test_preprocessor(self):
        self.assertEqual(self.names("#define M(x) do { \\\n  x \\\n} while (false\n"
                                    "#ifdef A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n"), ["f"])

    def test_members(self):
        self.assertEqual(self.names(
            "struct A : B<int> {\n  A(int a) : a_{a}, b_(a) { x(); }\n  ~A() {}\n"
            "  bool operator()(int) const { return {}; }\n  A& operator=(const A&) = default;\n"
            "  std::function<int(int)> f{nullptr};\n  int a_ = 3, b_{4};\n};\n"
            "template <class T> auto A<T>::g(T t) -> std::vector<T> { return {t}; }\n"),
            ["A", "~A", "operator()", "A::g"])

    def test_tables_are_not_functions(self):
        self.assertEqual(self.names("constexpr Row kRows[] = {{f(1), 2}, {f(3), 4}};\n"
                                    "constexpr auto g = [](int a) -> int { return a; };\n"
                                    "enum class E : int { a, b };\n"), [])


if __name__ == "__main__":
    unittest.main()
