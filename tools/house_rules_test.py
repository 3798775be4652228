#!/usr/bin/env python3
"""Each rule of house_rules.py finds its planted fault and leaves clean code alone."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import house_rules

HEADER = "// A header for tests.\n#pragma once\n"
ORDER = {"db": ["sql", "plan"], "fs": [], "base": [], "llm": [], "team": [], "bench": []}


def rules(path, text):
    return [what.split(":")[0] for _, what in house_rules.check_source(path, text, ORDER)]


class Rules(unittest.TestCase):
    def test_clean_code_has_no_findings(self):
        self.assertEqual(rules("db/sql/a.h", HEADER + '#include "base/result.h"\nint a();\n'), [])

    def test_parts_may_not_include_each_other(self):
        self.assertIn("layers", rules("db/sql/a.cc", '#include "fs/log/record.h"\n'))
        self.assertEqual(rules("bench/db/a.cc", '#include "db/sql/ast.h"\n'), [])

    def test_stages_flow_one_way(self):
        self.assertIn("layers", rules("db/sql/a.cc", '#include "db/plan/plan.h"\n'))
        self.assertEqual(rules("db/plan/a.cc", '#include "db/sql/ast.h"\n'), [])

    def test_heavy_headers_stay_behind_their_walls(self):
        self.assertIn("firewall", rules("team/core/a.cc", "#include <httplib.h>\n"))
        self.assertEqual(rules("base/http_server.cc", "#include <httplib.h>\n"), [])

    def test_long_functions_need_a_reason(self):
        body = "void f() {\n" + "  g();\n" * 71 + "}\n"
        self.assertIn("size", rules("db/sql/a.cc", body))
        self.assertEqual(rules("db/sql/a.cc", "// tidy: long-function, one dispatch\n" + body), [])

    def test_long_lines_and_files(self):
        self.assertIn("size", rules("db/sql/a.cc", "int " + "a" * 100 + ";\n"))
        self.assertIn("size", rules("db/sql/a.cc", "int a;\n" * 801))

    def test_headers_open_with_a_comment_and_guard(self):
        self.assertEqual(rules("db/sql/a.h", "int a();\n"), ["header", "header"])

    def test_banned_tokens_count_in_code_only(self):
        self.assertIn("banned", rules("db/sql/a.cc", "void f() { throw 1; }\n"))
        self.assertEqual(rules("db/sql/a.cc", '// throw\nconst char* t = "throw";\n'), [])

    def test_markers_and_machine_paths(self):
        self.assertIn("prose", rules("db/sql/a.cc", "// FIX" + "ME\n"))
        self.assertIn("prose", rules("db/sql/a.cc", "// see /ro" + "ot/x\n"))

    def test_markdown_links_must_exist(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "a.md")
            self.assertEqual(len(list(house_rules.check_markdown(page, "[x](missing.md)\n"))), 1)
            open(os.path.join(folder, "there.md"), "w").close()
            self.assertEqual(list(house_rules.check_markdown(page, "[x](there.md#part)\n")), [])


if __name__ == "__main__":
    unittest.main()
