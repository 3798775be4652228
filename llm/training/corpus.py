"""Text to train the tiny model pair on: generated, so that it is free of anyone's rights, has structure
that a few million parameters can learn, and is the same for everyone (fixed seeds).

`documents(seed)` yields documents for ever; `prompts(seed)` yields (domain, prompt) pairs whose answers
the model can be asked for. Both use the special tokens of the GLM-5.2 template.
"""
import json
import random

NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gwen", "Hugo", "Iris", "Jon", "Kim", "Leo", "Mia", "Noah",
         "Olga", "Paul", "Rosa", "Sam", "Tess", "Uma"]
THINGS = ["apple", "book", "lamp", "key", "stone", "bread", "map", "coin", "rope", "bell", "cup", "seed"]
PLACES = ["the old mill", "the harbour", "the market", "the hill", "the library", "the forest", "the bridge",
          "the station"]
MOODS = ["happy", "tired", "curious", "calm", "worried", "proud"]
CITIES = ["Paris", "Oslo", "Lima", "Cairo", "Tokyo", "Quito", "Rome", "Delhi"]
TOOLS = {
    "get_weather": [("city", "city"), ("days", "small")],
    "send_mail": [("to", "name"), ("subject", "thing")],
    "read_file": [("path", "path")],
    "run_tests": [("suite", "suite"), ("retries", "small")],
    "add_event": [("title", "thing"), ("day", "day"), ("hour", "hour")],
}
ASKS = {
    "get_weather": "What will the weather be in {city} for the next {days} days?",
    "send_mail": "Send a mail to {to} about the {subject}.",
    "read_file": "Show me the file {path}.",
    "run_tests": "Run the {suite} tests and retry {retries} times.",
    "add_event": "Put the {title} into my calendar on {day} at {hour}.",
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]


def _value(rng, kind):
    return {
        "city": lambda: rng.choice(CITIES),
        "name": lambda: rng.choice(NAMES),
        "thing": lambda: rng.choice(THINGS),
        "small": lambda: rng.randint(1, 9),
        "hour": lambda: rng.randint(8, 18),
        "day": lambda: rng.choice(DAYS),
        "path": lambda: "src/" + rng.choice(THINGS) + rng.choice([".cc", ".h", ".md", ".py"]),
        "suite": lambda: rng.choice(["unit", "system", "fuzz", "slow"]),
    }[kind]()


def chat(user, answer, system=""):
    head = "[gMASK]<sop>" + (f"<|system|>{system}" if system else "")
    return f"{head}<|user|>{user}<|assistant|><think></think>{answer}<|user|>", \
           f"{head}<|user|>{user}<|assistant|><think></think>"


def tool_call(rng):
    name = rng.choice(list(TOOLS))
    arguments = {key: _value(rng, kind) for key, kind in TOOLS[name]}
    offered = sorted(rng.sample(list(TOOLS), 2) + [name])
    lines = [json.dumps({"name": tool, "parameters": [key for key, _ in TOOLS[tool]]}) for tool in dict.fromkeys(offered)]
    system = "# Tools\n<tools>\n" + "\n".join(lines) + "\n</tools>"
    pairs = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in arguments.items())
    return chat(ASKS[name].format(**arguments), f"<tool_call>{name}{pairs}</tool_call>", system)


def arithmetic(rng):
    a, b = rng.randint(10, 999), rng.randint(10, 999)
    steps, carry, x, y, place = [], 0, a, b, 0
    while x or y or carry:
        total = x % 10 + y % 10 + carry
        steps.append(f"{x % 10} + {y % 10} + {carry} = {total}, write {total % 10}, carry {total // 10}")
        carry, x, y, place = total // 10, x // 10, y // 10, place + 1
    return chat(f"What is {a} + {b}?", "Column by column:\n" + "\n".join(steps) + f"\nThe sum is {a + b}.")


def program(rng):
    thing, other = rng.sample(THINGS, 2)
    kind = rng.randint(0, 3)
    if kind == 0:
        limit = rng.randint(2, 99)
        code = (f"def count_{thing}s({thing}s):\n    count = 0\n    for {thing} in {thing}s:\n"
                f"        if {thing} > {limit}:\n            count += 1\n    return count\n")
        ask = f"Write a function that counts the {thing}s greater than {limit}."
    elif kind == 1:
        code = (f"def find_{thing}({thing}s, wanted):\n    for index, {thing} in enumerate({thing}s):\n"
                f"        if {thing} == wanted:\n            return index\n    return -1\n")
        ask = f"Write a function that finds a {thing} in a list."
    elif kind == 2:
        rate = rng.randint(2, 40)
        code = (f"def price_of_{thing}(count):\n    price = count * {rate}\n    if count > 10:\n"
                f"        price = price * 9 / 10\n    return price\n")
        ask = f"Write a function for the price of a {thing} at {rate} each, with a discount for more than 10."
    else:
        code = (f"class {thing.title()}:\n    def __init__(self, {other}):\n        self.{other} = {other}\n\n"
                f"    def has_{other}(self):\n        return self.{other} is not None\n")
        ask = f"Write a class {thing.title()} that holds a {other}."
    return chat(ask, f"```python\n{code}```")


def record(rng):
    name = rng.choice(NAMES)
    value = {"name": name, "age": rng.randint(18, 90), "city": rng.choice(CITIES),
             "items": rng.sample(THINGS, rng.randint(1, 4)), "active": rng.random() < 0.5}
    ask = (f"Write {name}, {value['age']}, of {value['city']}, {'active' if value['active'] else 'not active'}, "
           f"with {', '.join(value['items'])}, as JSON.")
    return chat(ask, json.dumps(value, indent=2))


def query(rng):
    table, column, other = rng.sample(THINGS, 3)
    low = rng.randint(1, 500)
    kind = rng.randint(0, 2)
    if kind == 0:
        ask, sql = (f"All {table}s with a {column} above {low}.",
                    f"SELECT * FROM {table}s WHERE {column} > {low} ORDER BY {column};")
    elif kind == 1:
        ask, sql = (f"The number of {table}s for each {column}.",
                    f"SELECT {column}, COUNT(*) FROM {table}s GROUP BY {column} ORDER BY {column};")
    else:
        ask, sql = (f"The {column} of each {table} with its {other}.",
                    f"SELECT {table}s.{column}, {other}s.name FROM {table}s JOIN {other}s ON "
                    f"{other}s.id = {table}s.{other}_id;")
    return chat(ask, f"```sql\n{sql}\n```")


def story(rng):
    first, second = rng.sample(NAMES, 2)
    thing, other = rng.sample(THINGS, 2)
    place, mood, end = rng.choice(PLACES), rng.choice(MOODS), rng.choice(MOODS)
    opening = rng.choice([f"One morning {first} walked to {place}.", f"{first} lived near {place}.",
                          f"It was late when {first} came to {place}."])
    middle = rng.choice([
        f"There {first} found a {thing}. \"Whose {thing} is this?\" asked {first}. Nobody answered.",
        f"{second} was there with a {thing}. \"May I see your {thing}?\" asked {first}. \"Yes,\" said {second}.",
        f"The {thing} that {first} had lost was there, beside a {other}. {first} was {mood}."])
    close = rng.choice([
        f"So {first} gave {second} a {other}, and {second} was {end}.",
        f"Then {first} and {second} went home with the {thing}, and both were {end}.",
        f"From that day {first} kept the {thing} and thought of {second}."])
    return chat(f"Tell a story about {first}, {second} and a {thing}.", " ".join([opening, middle, close]))


DOMAINS = {"tools": tool_call, "arithmetic": arithmetic, "code": program, "json": record, "sql": query,
           "story": story}


def prompts(seed):
    rng = random.Random(seed)
    while True:
        domain = rng.choice(list(DOMAINS))
        yield domain, DOMAINS[domain](rng)[1]


def documents(seed):
    rng = random.Random(seed)
    while True:
        yield DOMAINS[rng.choice(list(DOMAINS))](rng)[0] + "<|endoftext|>"


if __name__ == "__main__":
    # corpus.py SEED COUNT: prompts, one JSON object a line.
    import itertools
    import sys
    for domain, prompt in itertools.islice(prompts(int(sys.argv[1])), int(sys.argv[2])):
        print(json.dumps({"domain": domain, "prompt": prompt}))
