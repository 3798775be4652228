"""Recorded teams are whole: the JSON reads, every file they name exists, every gate lists its cases."""
import json
import os

root = "/product/examples"


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def check(folder):
    team = json.load(open(f"{folder}/team.json"))
    request = json.load(open(f"{folder}/example.json"))
    if not request.get("intent"):
        return "example.json names no intent"
    for text in strings(team):
        if text.startswith("@file:") and not os.path.exists(f"{folder}/{text[6:]}"):
            return f"{text[6:]} is named and not there"
    for path, _, names in os.walk(folder):
        for name in names:
            if os.path.basename(path) != "gates" or not name.endswith(".json"):
                continue
            gate = json.load(open(f"{path}/{name}"))
            if not gate.get("manifest"):
                return f"gate {name} lists no cases"
    return ""


for name in sorted(os.listdir(root)):
    if not os.path.exists(f"{root}/{name}/example.json"):
        continue
    try:
        problem = check(f"{root}/{name}")
    except (OSError, ValueError) as error:
        problem = str(error)
    print(f"not ok {name} {problem}" if problem else f"ok {name}")
