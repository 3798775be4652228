#include "bench/db/tpch_data.h"

#include <cstdio>
#include <iterator>

namespace bench {

const char kTpchSchema[] = R"(
CREATE TABLE region(r_regionkey INTEGER PRIMARY KEY, r_name CHAR(25), r_comment VARCHAR(152));
CREATE TABLE nation(n_nationkey INTEGER PRIMARY KEY, n_name CHAR(25), n_regionkey INTEGER,
  n_comment VARCHAR(152));
CREATE TABLE part(p_partkey INTEGER PRIMARY KEY, p_name VARCHAR(55), p_mfgr CHAR(25),
  p_brand CHAR(10), p_type VARCHAR(25), p_size INTEGER, p_container CHAR(10),
  p_retailprice DECIMAL(15,2), p_comment VARCHAR(23));
CREATE TABLE supplier(s_suppkey INTEGER PRIMARY KEY, s_name CHAR(25), s_address VARCHAR(40),
  s_nationkey INTEGER, s_phone CHAR(15), s_acctbal DECIMAL(15,2), s_comment VARCHAR(101));
CREATE TABLE partsupp(ps_partkey INTEGER, ps_suppkey INTEGER, ps_availqty INTEGER,
  ps_supplycost DECIMAL(15,2), ps_comment VARCHAR(199), PRIMARY KEY(ps_partkey, ps_suppkey));
CREATE TABLE customer(c_custkey INTEGER PRIMARY KEY, c_name VARCHAR(25), c_address VARCHAR(40),
  c_nationkey INTEGER, c_phone CHAR(15), c_acctbal DECIMAL(15,2), c_mktsegment CHAR(10),
  c_comment VARCHAR(117));
CREATE TABLE orders(o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER, o_orderstatus CHAR(1),
  o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority CHAR(15), o_clerk CHAR(15),
  o_shippriority INTEGER, o_comment VARCHAR(79));
CREATE TABLE lineitem(l_orderkey INTEGER, l_partkey INTEGER, l_suppkey INTEGER,
  l_linenumber INTEGER, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2),
  l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag CHAR(1), l_linestatus CHAR(1),
  l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct CHAR(25),
  l_shipmode CHAR(10), l_comment VARCHAR(44), PRIMARY KEY(l_orderkey, l_linenumber));
)";

namespace {

constexpr const char* kColours[] = {
    "almond",   "antique",   "aquamarine", "azure",     "beige",     "bisque",    "black",
    "blanched", "blue",      "blush",      "brown",     "burlywood", "burnished", "chartreuse",
    "chiffon",  "chocolate", "coral",      "cornsilk",  "cream",     "cyan",      "cornflower",
    "dark",     "deep",      "dim",        "dodger",    "drab",      "firebrick", "floral",
    "forest",   "frosted",   "gainsboro",  "ghost",     "goldenrod", "green",     "grey",
    "honeydew", "hot",       "indian",     "ivory",     "khaki",     "lace",      "lavender",
    "lawn",     "lemon",     "light",      "lime",      "linen",     "magenta",   "maroon",
    "medium",   "metallic",  "midnight",   "mint",      "misty",     "moccasin",  "navajo",
    "navy",     "olive",     "orange",     "orchid",    "pale",      "papaya",    "peach",
    "peru",     "pink",      "plum",       "powder",    "puff",      "purple",    "red",
    "rose",     "rosy",      "royal",      "saddle",    "salmon",    "sandy",     "seashell",
    "sienna",   "sky",       "slate",      "smoke",     "snow",      "spring",    "steel",
    "tan",      "thistle",   "tomato",     "turquoise", "violet",    "wheat",     "white",
    "yellow"};
constexpr const char* kTypeFirst[] = {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"};
constexpr const char* kTypeSecond[] = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"};
constexpr const char* kTypeThird[] = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};
constexpr const char* kSizeWord[] = {"SM", "LG", "MED", "JUMBO", "WRAP"};
constexpr const char* kBoxWord[] = {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"};
constexpr const char* kSegments[] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY",
                                     "HOUSEHOLD"};
constexpr const char* kPriorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
                                       "5-LOW"};
constexpr const char* kInstructions[] = {"DELIVER IN PERSON", "COLLECT COD", "NONE",
                                         "TAKE BACK RETURN"};
constexpr const char* kModes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
constexpr const char* kNouns[] = {
    "foxes",        "ideas",     "theodolites", "pinto beans", "instructions", "excuses",
    "dependencies", "platelets", "asymptotes",  "courts",      "dolphins",     "multipliers",
    "sauternes",    "warthogs",  "frets",       "dinos",       "packages",     "requests",
    "accounts",     "deposits",  "patterns",    "forges",      "braids",       "sentiments",
    "pearls",       "realms",    "escapades",   "orbits"};
constexpr const char* kVerbs[] = {"sleep", "wake",   "are",     "cajole", "haggle", "nag",
                                  "use",   "boost",  "affix",   "detect", "nod",    "integrate",
                                  "lose",  "solve",  "promise", "engage", "hinder", "print",
                                  "eat",   "grow",   "impress", "serve",  "run",    "doze",
                                  "play",  "unwind", "hang",    "believe"};
constexpr const char* kAdjectives[] = {
    "special", "pending", "unusual", "express", "furious", "sly",   "careful", "blithe",
    "quick",   "fluffy",  "slow",    "quiet",   "thin",    "close", "dogged",  "brave",
    "idle",    "busy",    "regular", "final",   "ironic",  "even",  "bold",    "silent"};
constexpr const char* kAdverbs[] = {"sometimes", "always",   "never",    "furiously", "slyly",
                                    "carefully", "blithely", "quickly",  "fluffily",  "slowly",
                                    "quietly",   "closely",  "doggedly", "daringly",  "finally"};
constexpr const char* kPrepositions[] = {"about", "above",  "according to", "across", "after",
                                         "among", "around", "at",           "before", "between"};

struct Nation {
  const char* name;
  int region;
};
constexpr Nation kNations[] = {
    {"ALGERIA", 0},      {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1},
    {"EGYPT", 4},        {"ETHIOPIA", 0},  {"FRANCE", 3}, {"GERMANY", 3},
    {"INDIA", 2},        {"INDONESIA", 2}, {"IRAN", 4},   {"IRAQ", 4},
    {"JAPAN", 2},        {"JORDAN", 4},    {"KENYA", 0},  {"MOROCCO", 0},
    {"MOZAMBIQUE", 0},   {"PERU", 1},      {"CHINA", 2},  {"ROMANIA", 3},
    {"SAUDI ARABIA", 4}, {"VIETNAM", 2},   {"RUSSIA", 3}, {"UNITED KINGDOM", 3},
    {"UNITED STATES", 1}};
constexpr const char* kRegions[] = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};

// Days from 1992-01-01, the first order date; 2,557 days to the end of 1998.
constexpr i64 kLastOrderDay = 2557 - 151 - 1;
constexpr i64 kCurrentDay = 1263;  // 1995-06-17

std::string date_of(i64 day) {
  int year = 1992;
  auto days_in = [](int y) { return y % 4 == 0 ? 366 : 365; };
  while (day >= days_in(year)) day -= days_in(year++);
  constexpr int kMonth[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int month = 0;
  for (;; ++month) {
    int days = kMonth[month] + (month == 1 && year % 4 == 0 ? 1 : 0);
    if (day < days) break;
    day -= days;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02d-%02d", year, month + 1, static_cast<int>(day) + 1);
  return text;
}

class Loader {
 public:
  Loader(Session& session, f64 scale)
      : session_(session),
        parts_(count(200000, scale)),
        suppliers_(count(10000, scale)),
        customers_(count(150000, scale)),
        orders_(count(1500000, scale)) {}

  void run() {
    session_.exec("BEGIN");
    regions();
    suppliers();
    parts();
    customers();
    orders();
    session_.exec("COMMIT");
  }

 private:
  static i64 count(i64 at_one, f64 scale) {
    return static_cast<i64>(static_cast<f64>(at_one) * scale + 0.5);
  }

  template <size_t N>
  std::string pick(const char* const (&from)[N]) {
    return from[rng_.below(N)];
  }

  // Sentences of words, cut at a random length between the two bounds.
  std::string text(i64 shortest, i64 longest) {
    size_t length = static_cast<size_t>(rng_.between(shortest, longest));
    std::string out;
    while (out.size() < length) {
      if (!out.empty()) out += rng_.chance(0.3) ? ". " : " ";
      if (rng_.chance(0.5)) out += pick(kAdjectives) + " ";
      out += pick(kNouns) + " ";
      if (rng_.chance(0.4)) out += pick(kAdverbs) + " ";
      out += pick(kVerbs);
      if (rng_.chance(0.5)) out += " " + pick(kPrepositions) + " the " + pick(kNouns);
    }
    out.resize(length);
    return out;
  }

  std::string address() {
    std::string out(static_cast<size_t>(rng_.between(10, 40)), ' ');
    constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
    for (char& c : out) c = kLetters[rng_.below(sizeof kLetters - 1)];
    return out;
  }

  std::string phone(i64 nation) {
    char text[64];
    std::snprintf(text, sizeof text, "%d-%d-%d-%d", static_cast<int>(nation) + 10,
                  static_cast<int>(rng_.between(100, 999)),
                  static_cast<int>(rng_.between(100, 999)),
                  static_cast<int>(rng_.between(1000, 9999)));
    return text;
  }

  static std::string numbered(const char* prefix, i64 key) {
    char text[64];
    std::snprintf(text, sizeof text, "%s#%09lld", prefix, static_cast<long long>(key));
    return text;
  }

  f64 money(i64 low_cents, i64 high_cents) {
    return static_cast<f64>(rng_.between(low_cents, high_cents)) / 100;
  }

  static f64 retail_price(i64 part) {
    return static_cast<f64>(90000 + (part / 10) % 20001 + 100 * (part % 1000)) / 100;
  }

  // The i-th of the four suppliers of a part.
  i64 supplier_of(i64 part, i64 i) const {
    i64 s = suppliers_;
    return (part + i * (s / 4 + (part - 1) / s)) % s + 1;
  }

  void regions() {
    Statement region(session_, "INSERT INTO region VALUES(?,?,?)");
    for (i64 i = 0; i < 5; ++i)
      region.bind(1, i).bind(2, std::string(kRegions[i])).bind(3, text(31, 115)).run();
    Statement nation(session_, "INSERT INTO nation VALUES(?,?,?,?)");
    for (i64 i = 0; i < 25; ++i) {
      nation.bind(1, i).bind(2, std::string(kNations[i].name));
      nation.bind(3, static_cast<i64>(kNations[i].region)).bind(4, text(31, 114)).run();
    }
  }

  void suppliers() {
    Statement insert(session_, "INSERT INTO supplier VALUES(?,?,?,?,?,?,?)");
    for (i64 key = 1; key <= suppliers_; ++key) {
      i64 nation = rng_.between(0, 24);
      std::string comment = text(25, 100);
      // Five of 10,000 suppliers complain and five recommend.
      if (key % 2000 == 7) comment = "blithe Customer accounts Complaints sleep";
      if (key % 2000 == 1007) comment = "blithe Customer accounts Recommends sleep";
      insert.bind(1, key).bind(2, numbered("Supplier", key)).bind(3, address());
      insert.bind(4, nation).bind(5, phone(nation)).bind(6, money(-99999, 999999));
      insert.bind(7, comment).run();
    }
  }

  void parts() {
    Statement insert(session_, "INSERT INTO part VALUES(?,?,?,?,?,?,?,?,?)");
    Statement offer(session_, "INSERT INTO partsupp VALUES(?,?,?,?,?)");
    for (i64 key = 1; key <= parts_; ++key) {
      std::string name = pick(kColours);
      for (int i = 0; i < 4; ++i) name += " " + pick(kColours);
      i64 maker = rng_.between(1, 5);
      i64 brand = maker * 10 + rng_.between(1, 5);
      insert.bind(1, key).bind(2, name).bind(3, "Manufacturer#" + std::to_string(maker));
      insert.bind(4, "Brand#" + std::to_string(brand));
      std::string type = pick(kTypeFirst) + " " + pick(kTypeSecond) + " ";
      insert.bind(5, type + pick(kTypeThird)).bind(6, rng_.between(1, 50));
      std::string container = pick(kSizeWord) + " ";
      insert.bind(7, container + pick(kBoxWord)).bind(8, retail_price(key));
      insert.bind(9, text(5, 22)).run();
      for (i64 i = 0; i < 4; ++i) {
        offer.bind(1, key).bind(2, supplier_of(key, i)).bind(3, rng_.between(1, 9999));
        offer.bind(4, money(100, 100000)).bind(5, text(49, 198)).run();
      }
    }
  }

  void customers() {
    Statement insert(session_, "INSERT INTO customer VALUES(?,?,?,?,?,?,?,?)");
    for (i64 key = 1; key <= customers_; ++key) {
      i64 nation = rng_.between(0, 24);
      insert.bind(1, key).bind(2, numbered("Customer", key)).bind(3, address());
      insert.bind(4, nation).bind(5, phone(nation)).bind(6, money(-99999, 999999));
      insert.bind(7, pick(kSegments)).bind(8, text(29, 116)).run();
    }
  }

  void orders() {
    Statement insert(session_, "INSERT INTO orders VALUES(?,?,?,?,?,?,?,?,?)");
    Statement line(session_, "INSERT INTO lineitem VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    i64 clerks = std::max<i64>(1, orders_ / 1500);
    for (i64 i = 0; i < orders_; ++i) {
      i64 key = i / 8 * 32 + i % 8 + 1;  // eight of each 32 keys are in use
      i64 customer = rng_.between(1, customers_);
      while (customer % 3 == 0) customer = rng_.between(1, customers_);
      i64 day = rng_.between(0, kLastOrderDay);
      i64 lines = rng_.between(1, 7);
      i64 open = 0;
      f64 total = 0;
      for (i64 n = 1; n <= lines; ++n) total += add_line(line, key, n, day, &open);
      const char* status = open == lines ? "O" : open == 0 ? "F" : "P";
      insert.bind(1, key).bind(2, customer).bind(3, std::string(status));
      insert.bind(4, static_cast<f64>(static_cast<i64>(total * 100 + 0.5)) / 100);
      insert.bind(5, date_of(day)).bind(6, pick(kPriorities));
      insert.bind(7, numbered("Clerk", rng_.between(1, clerks))).bind(8, i64{0});
      insert.bind(9, text(19, 78)).run();
    }
  }

  // What it adds to the order's total price.
  f64 add_line(Statement& line, i64 order, i64 number, i64 order_day, i64* open) {
    i64 part = rng_.between(1, parts_);
    i64 quantity = rng_.between(1, 50);
    f64 price = static_cast<f64>(static_cast<i64>(retail_price(part) * 100 + 0.5) * quantity) / 100;
    f64 discount = static_cast<f64>(rng_.between(0, 10)) / 100;
    f64 tax = static_cast<f64>(rng_.between(0, 8)) / 100;
    i64 ship = order_day + rng_.between(1, 121);
    i64 commit = order_day + rng_.between(30, 90);
    i64 receipt = ship + rng_.between(1, 30);
    bool shipped = ship <= kCurrentDay;
    if (!shipped) ++*open;
    const char* returned = receipt > kCurrentDay ? "N" : rng_.chance(0.5) ? "R" : "A";
    line.bind(1, order).bind(2, part).bind(3, supplier_of(part, rng_.between(0, 3)));
    line.bind(4, number).bind(5, static_cast<f64>(quantity)).bind(6, price).bind(7, discount);
    line.bind(8, tax).bind(9, std::string(returned)).bind(10, std::string(shipped ? "F" : "O"));
    line.bind(11, date_of(ship)).bind(12, date_of(commit)).bind(13, date_of(receipt));
    line.bind(14, pick(kInstructions)).bind(15, pick(kModes)).bind(16, text(10, 43)).run();
    return price * (1 + tax) * (1 - discount);
  }

  Session& session_;
  base::Rng rng_{19920101};
  i64 parts_, suppliers_, customers_, orders_;
};

}  // namespace

void load_tpch(Session& session, f64 scale) {
  session.exec(kTpchSchema);
  Loader(session, scale).run();
}

}  // namespace bench
