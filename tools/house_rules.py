#!/usr/bin/env python3
"""The rules of the house that a script can check. Prints one line a finding and exits 1 if any.

  layers    a part includes itself and base/ only; inside a part a stage includes those before it
            in the part's CMakeLists.txt, never those after
  firewall  heavy headers are included only by the files named here
  size      files up to 800 lines, lines up to 100 columns, functions up to 70 lines; a longer
            function says `// tidy: long-function, <reason>` above its body's first line, or its file
            stands in tools/long_functions.txt, a list that may only get shorter
  header    #pragma once, and a comment at the top that says what it is for
  banned    tokens with a better replacement, named in the message
  listed    every .cc stands in some CMakeLists.txt
  prose     paths named in Markdown links exist; no machine paths, no left-over markers
"""
import os
import re
import subprocess
import sys

PARTS = ["base", "db", "fs", "llm", "team", "bench"]
FIREWALL = {
    r"boost/json": r"^base/json",
    r"httplib\.h": r"^base/http_server\.cc$",
    r"curl/curl\.h": r"^base/http_client\.cc$",
    r"CLI/CLI\.hpp": r"/cli[^/]*\.cc$|/cli/",
    r"nlohmann/": r"_test\.cc$",
    r"rapidcheck": r"_test\.cc$",
    r"regex>": r"^$",
}
BANNED = {
    r"\bthrow\b(?! std::bad_alloc)": "return an Error (base/result.h)",
    r"\bassert\(": "CHECK or DCHECK (base/check.h)",
    r"\bco_(await|yield|return)\b": "a thread with a deadline; g++ 12 miscompiles coroutines",
    r"\.detach\(\)": "a joined thread",
    r"(?<![\w.])s?rand\(": "base::Rng",
    r"(?<![\w:.>])system\(\"": "base::run_process",
    # The C API's entry points stand in the global namespace and use db::capi for everything.
    r"^using namespace (?!db::capi;)": "qualified names",
}
# C that must be C: the drop-in C API's types and its clients.
MARKERS = re.compile(r"\b(FIXME|XXX)\b|\bTODO\b(?!\(#\d+\))")
LINES_IN_A_FUNCTION = 70
KNOWN_LONG = "tools/long_functions.txt"
PATHS = re.compile(r"(?<![\w.])/(work|root|home/\w+)/")


def tracked():
    out = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in out.splitlines() if os.path.isfile(path)]


def stage_order(part):
    """Folder names in the order the part's CMakeLists.txt adds them."""
    try:
        text = open(f"{part}/CMakeLists.txt").read()
    except OSError:
        return []
    found = re.search(r"foreach\(stage IN ITEMS\s+([^)]*)\)", text)
    return found.group(1).split() if found else []


def strip_comments_and_strings(text):
    """Code only, line structure kept."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)

    def blank(match):
        return "\n" * match.group(0).count("\n") or ("\"\"" if match.group(0)[0] in "\"R" else " ")

    return pattern.sub(blank, text)


def check_includes(path, text, order):
    part = path.split("/")[0]
    if part not in PARTS:
        return
    stage = path.split("/")[1] if path.count("/") > 1 else None
    is_test = path.endswith(("_test.cc", "_bench.cc", "_fuzz.cc")) or stage == "tests"
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#include\s+(["<][^">]+[">])', line)
        if not found:
            continue
        name = found.group(1)
        for header, allowed in FIREWALL.items():
            if re.search(header, name) and not re.search(allowed, path):
                yield number, f"firewall: {name} may be included only by {allowed}"
        if name[0] != '"':
            continue
        target = name[1:-1].split("/")
        if target[0] in PARTS and target[0] not in ("base", part) and part != "bench":
            yield number, f"layers: {part}/ may not include {name}"
        stages = order.get(part, [])
        if (target[0] == part and len(target) > 2 and stage in stages and target[1] in stages
                and not is_test and stages.index(target[1]) > stages.index(stage)):
            yield number, f"layers: {part}/{stage} comes before {part}/{target[1]} and may not include it"


def check_functions(path, code, text):
    """Bodies longer than 70 lines. A body opens at a line that ends in `) {` and the like."""
    lines = code.splitlines()
    original = text.splitlines()
    opener = re.compile(r"^(?!\s*(if|for|while|switch|else|do|namespace|class|struct|enum|union|extern)\b)"
                        r".*\)[\w\s&:<>,*>-]*\{$")
    i = 0
    while i < len(lines):
        if opener.match(lines[i]) and not lines[i].lstrip().startswith("}"):
            depth, j = 0, i
            while j < len(lines):
                depth += lines[j].count("{") - lines[j].count("}")
                if depth <= 0:
                    break
                j += 1
            excuse = any("tidy: long-function," in original[k] for k in range(max(0, i - 4), min(i + 3, len(original))))
            if j - i - 1 > LINES_IN_A_FUNCTION and not excuse:
                yield i + 1, f"size: a function of {j - i - 1} lines; {LINES_IN_A_FUNCTION} at most"
            i += 1 if j - i > 70 else max(1, j - i)
        else:
            i += 1


def check_source(path, text, order):
    lines = text.splitlines()
    if len(lines) > 800:
        yield 1, f"size: {len(lines)} lines; 800 at most"
    # What stands in a string may be as long as it is; clang-format breaks everything else.
    for number, line in enumerate(strip_comments_and_strings(text).splitlines(), 1):
        if len(line) > 100:
            yield number, f"size: {len(line)} columns; 100 at most"
    for number, line in enumerate(lines, 1):
        # The sandbox's tests try to reach the folders that an attacker would.
        if PATHS.search(line) and not re.match(r"team/(sandbox|gate)/.*_test\.cc", path):
            yield number, "prose: a path of somebody's machine"
        if MARKERS.search(line):
            yield number, "prose: a left-over marker; do it, or write TODO(#issue)"
    if path.endswith(".h"):
        if "#pragma once" not in text:
            yield 1, "header: no #pragma once"
        if not text.lstrip().startswith(("//", "/*")):
            yield 1, "header: opens without a comment that says what it is for"
    yield from check_includes(path, text, order)
    code = strip_comments_and_strings(text)
    for number, line in enumerate(code.splitlines(), 1):
        for token, instead in BANNED.items():
            if re.search(token, line):
                yield number, f"banned: '{re.search(token, line).group(0).strip()}'; use {instead}"
    if not path.endswith(("_test.cc", "_fuzz.cc")):
        yield from check_functions(path, code, text)


def check_markdown(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if PATHS.search(line):
            yield number, "prose: a path of somebody's machine"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.normpath(os.path.join(os.path.dirname(path), target))):
                yield number, f"prose: {target} does not exist"


def check_listed(files):
    cmake = {path: open(path).read() for path in files if path.endswith("CMakeLists.txt")}
    for path in files:
        if not path.endswith(".cc") or path.split("/")[0] not in PARTS or path.startswith("base/testing/"):
            continue
        folder, listed = os.path.dirname(path), False
        while not listed:
            text = cmake.get(os.path.join(folder, "CMakeLists.txt") if folder else "CMakeLists.txt", "")
            relative = os.path.relpath(path, folder or ".")
            listed = re.search(r"(?<![\w/.-])" + re.escape(relative) + r"(?![\w.])", text) is not None
            if not folder:
                break
            folder = os.path.dirname(folder)
        if not listed:
            yield path, 1, "listed: stands in no CMakeLists.txt, so nothing builds it"


def known_long():
    """How many long functions each file is still allowed to have."""
    counts = {}
    if os.path.exists(KNOWN_LONG):
        for line in open(KNOWN_LONG):
            if line.strip() and not line.startswith("#"):
                count, path = line.split()
                counts[path] = int(count)
    return counts


def findings(files):
    order = {part: stage_order(part) for part in PARTS}
    allowed = known_long()
    for path in files:
        if path.startswith("examples/"):
            continue  # what the recorded team wrote stays as it was said
        if path.endswith((".cc", ".h", ".c")):
            text = open(path, encoding="utf-8", errors="replace").read()
            found = list(check_source(path, text, order))
            long = [finding for finding in found if finding[1].startswith("size: a function")]
            if path in allowed and len(long) <= allowed[path]:
                if len(long) < allowed[path]:
                    yield path, 1, f"size: has {len(long)} long functions now; say so in {KNOWN_LONG}"
                found = [finding for finding in found if finding not in long]
            for number, what in found:
                yield path, number, what
        elif path.endswith(".md"):
            for number, what in check_markdown(path, open(path, encoding="utf-8").read()):
                yield path, number, what
    yield from check_listed(files)


def main():
    found = list(findings(tracked()))
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    if found:
        print(f"tools/check: {len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
