// Mixes: a speedtest-like script, TPC-C-like transactions, threads on one WAL file.
#include "bench/db/data.h"

#include <memory>
#include <thread>

namespace bench {
namespace {

// What a small application does in a day: unprepared inserts, range counts, LIKE, an index, updates
// and deletes by range and by key.
Workload script_mix() {
  return {.group = "mix",
          .name = "speedtest-like script",
          .setup = [](Session&, i64) {},
          .run =
              [](Session& s, i64 rows) {
                const i64 count = rows / 10;
                s.exec("CREATE TABLE z1(a INT, b INT, c TEXT); CREATE TABLE z2(a INT, b INT, c)");
                s.exec("BEGIN");
                for (i64 i = 1; i <= count; i++) {
                  const u64 r = s.rng().next();
                  s.query("INSERT INTO z1 VALUES(" + std::to_string(i) + "," +
                          std::to_string(r % 100000) + ",'" + word(r) + " " + word(r >> 20) + "')");
                }
                s.exec("COMMIT; BEGIN; INSERT INTO z2 SELECT * FROM z1 ORDER BY b; COMMIT");
                for (i64 i = 0; i < 20; i++) {
                  s.query("SELECT count(*), avg(b) FROM z1 WHERE b >= " + std::to_string(i * 1000) +
                          " AND b < " + std::to_string(i * 1000 + 10000));
                  s.query("SELECT count(*) FROM z1 WHERE c LIKE '%" +
                          word(s.rng().next()).substr(0, 2) + "%'");
                }
                s.exec("CREATE INDEX z1b ON z1(b); CREATE UNIQUE INDEX z1a ON z1(a)");
                for (i64 i = 0; i < 200; i++)
                  s.query("SELECT count(*), avg(b) FROM z1 WHERE b >= " + std::to_string(i * 100) +
                          " AND b < " + std::to_string(i * 100 + 200));
                s.exec("BEGIN");
                for (i64 i = 1; i <= count; i += 5)
                  s.exec("UPDATE z1 SET b = " + std::to_string(s.rng().below(100000)) +
                         " WHERE a = " + std::to_string(i));
                s.exec("UPDATE z1 SET b = b * 2 WHERE a < 1000; DELETE FROM z1 WHERE c LIKE '%q%'");
                s.exec("DELETE FROM z1 WHERE a > 10 AND a < 500; COMMIT");
                s.query("SELECT count(*), sum(b), max(a) FROM z1");
                s.exec("DROP TABLE z1; DROP TABLE z2");
                return count;
              }};
}

constexpr i64 kDistricts = 10;
constexpr i64 kCustomers = 300;
constexpr i64 kItems = 2000;

void make_shop(Session& s, i64) {
  s.exec(
      "CREATE TABLE warehouse(id INTEGER PRIMARY KEY, ytd REAL);"
      "CREATE TABLE district(id INTEGER PRIMARY KEY, next_order INT, ytd REAL);"
      "CREATE TABLE customer(d INT, id INT, name TEXT, balance REAL, payments INT,"
      " PRIMARY KEY(d, id)) WITHOUT ROWID;"
      "CREATE INDEX customer_name ON customer(d, name);"
      "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL);"
      "CREATE TABLE stock(item INTEGER PRIMARY KEY, quantity INT, orders INT, data TEXT);"
      "CREATE TABLE orders(d INT, id INT, c INT, lines INT, carrier INT, PRIMARY KEY(d, id));"
      "CREATE INDEX orders_c ON orders(d, c, id);"
      "CREATE TABLE new_order(d INT, id INT, PRIMARY KEY(d, id)) WITHOUT ROWID;"
      "CREATE TABLE line(d INT, o INT, number INT, item INT, quantity INT, amount REAL,"
      " PRIMARY KEY(d, o, number));"
      "BEGIN; INSERT INTO warehouse VALUES(1, 0)");
  {
    Statement district(s, "INSERT INTO district VALUES(?, 1, 0)");
    Statement customer(s, "INSERT INTO customer VALUES(?, ?, ?, 0, 0)");
    for (i64 d = 1; d <= kDistricts; d++) {
      district.bind(1, d).run();
      for (i64 c = 1; c <= kCustomers; c++)
        customer.bind(1, d).bind(2, c).bind(3, word(static_cast<u64>(c % 100))).run();
    }
    Statement item(s, "INSERT INTO item VALUES(?, ?, ?)");
    Statement stock(s, "INSERT INTO stock VALUES(?, 50, 0, ?)");
    for (i64 i = 1; i <= kItems; i++) {
      const u64 r = s.rng().next();
      item.bind(1, i).bind(2, word(r)).bind(3, static_cast<f64>(r % 10000) / 100).run();
      stock.bind(1, i).bind(2, word(r >> 8) + word(r >> 16) + word(r >> 24)).run();
    }
  }
  s.exec("COMMIT");
}

// The five transactions of TPC-C in their proportions, on one warehouse.
class Shop {
 public:
  explicit Shop(Session& s) : s_(s) {}

  void transaction() {
    const u64 dice = s_.rng().below(100);
    begin_.run();
    if (dice < 45) {
      new_order();
    } else if (dice < 88) {
      payment();
    } else if (dice < 92) {
      last_order_.bind(1, district()).bind(2, customer()).run();
    } else if (dice < 96) {
      delivery();
    } else {
      low_stock_.bind(1, district()).bind(2, i64{30}).run();
    }
    commit_.run();
  }

 private:
  i64 below(i64 n) { return static_cast<i64>(s_.rng().below(static_cast<u64>(n))) + 1; }
  i64 district() { return below(kDistricts); }
  i64 customer() { return below(kCustomers); }

  void new_order() {
    const i64 d = district();
    const i64 lines = 5 + below(10);
    next_.bind(1, d).run();
    order_.bind(1, d).bind(2, customer()).bind(3, lines).run();
    open_.bind(1, d).run();
    for (i64 n = 1; n <= lines; n++) {
      const i64 item = below(kItems);
      const i64 quantity = below(10);
      price_.bind(1, item).run();
      take_.bind(1, item).bind(2, quantity).run();
      line_.bind(1, d).bind(2, n).bind(3, item).bind(4, quantity).run();
    }
  }

  void payment() {
    const i64 d = district();
    const f64 amount = static_cast<f64>(below(5000));
    pay_warehouse_.bind(1, amount).run();
    pay_district_.bind(1, amount).bind(2, d).run();
    by_name_.bind(1, d).bind(2, word(s_.rng().below(100))).run();
    pay_customer_.bind(1, amount).bind(2, d).bind(3, customer()).run();
  }

  void delivery() {
    for (i64 d = 1; d <= kDistricts; d++) {
      carry_.bind(1, d).run();
      pay_lines_.bind(1, d).run();
      close_.bind(1, d).run();
    }
  }

  Session& s_;
  Statement begin_{s_, "BEGIN IMMEDIATE"}, commit_{s_, "COMMIT"};
  Statement next_{s_, "UPDATE district SET next_order = next_order + 1 WHERE id = ?1"};
  Statement order_{s_,
                   "INSERT INTO orders SELECT ?1, next_order, ?2, ?3, NULL FROM district "
                   "WHERE id = ?1"};
  Statement open_{s_, "INSERT INTO new_order SELECT ?1, next_order FROM district WHERE id = ?1"};
  Statement price_{s_, "SELECT name, price FROM item WHERE id = ?1"};
  Statement take_{s_,
                  "UPDATE stock SET quantity = CASE WHEN quantity > ?2 + 10 THEN quantity - ?2 "
                  "ELSE quantity - ?2 + 91 END, orders = orders + 1 WHERE item = ?1"};
  Statement line_{s_,
                  "INSERT INTO line SELECT ?1, d.next_order, ?2, ?3, ?4, i.price * ?4 "
                  "FROM district d, item i WHERE d.id = ?1 AND i.id = ?3"};
  Statement pay_warehouse_{s_, "UPDATE warehouse SET ytd = ytd + ?1 WHERE id = 1"};
  Statement pay_district_{s_, "UPDATE district SET ytd = ytd + ?1 WHERE id = ?2"};
  Statement by_name_{s_, "SELECT id, balance FROM customer WHERE d = ?1 AND name = ?2 ORDER BY id"};
  Statement pay_customer_{s_,
                          "UPDATE customer SET balance = balance - ?1, payments = payments + 1 "
                          "WHERE d = ?2 AND id = ?3"};
  Statement last_order_{
      s_,
      "SELECT o.id, l.item, l.amount FROM orders o JOIN line l ON l.d = o.d AND "
      "l.o = o.id WHERE o.d = ?1 AND o.c = ?2 ORDER BY o.id DESC, l.number LIMIT 15"};
  Statement carry_{s_,
                   "UPDATE orders SET carrier = 7 WHERE d = ?1 AND id = (SELECT min(id) FROM "
                   "new_order WHERE d = ?1)"};
  Statement pay_lines_{s_,
                       "UPDATE customer SET balance = balance + (SELECT coalesce(sum(amount), 0) "
                       "FROM line WHERE d = ?1 AND o = (SELECT min(id) FROM new_order WHERE d = "
                       "?1)) WHERE d = ?1 AND id = (SELECT c FROM orders WHERE d = ?1 AND id = "
                       "(SELECT min(id) FROM new_order WHERE d = ?1))"};
  Statement close_{s_,
                   "DELETE FROM new_order WHERE d = ?1 AND id = (SELECT min(id) FROM new_order "
                   "WHERE d = ?1)"};
  Statement low_stock_{s_,
                       "SELECT count(DISTINCT l.item) FROM line l JOIN stock s ON s.item = l.item "
                       "WHERE l.d = ?1 AND l.o >= (SELECT next_order - 20 FROM district WHERE id = "
                       "?1) AND s.quantity < ?2"};
};

Workload shop_mix(std::string name, Place place) {
  return {.group = "mix",
          .name = std::move(name),
          .place = place,
          .setup = make_shop,
          .run = [](Session& s, i64) {
            {
              Shop shop(s);
              for (int i = 0; i < 300 && !s.failed(); i++) shop.transaction();
            }
            s.query("SELECT sum(balance), (SELECT count(*) FROM line) FROM customer");
            return i64{300};
          }};
}

// Runs `work(session, number)` on connections of its own, one thread each.
void in_threads(Session& s, int threads, const std::function<void(Session&, int)>& work) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < threads; i++) {
    sessions.push_back(
        std::make_unique<Session>(s.engine(), s.path(), s.rng().next() + static_cast<u64>(i)));
    sessions.back()->exec("PRAGMA busy_timeout=60000");
  }
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; i++)
      running.emplace_back([&, i] { work(*sessions[static_cast<size_t>(i)], i); });
  }
  for (auto& one : sessions) {
    if (one->failed()) s.fail("in a thread: " + one->error());
  }
}

Workload writers(int threads, const std::string& synchronous, i64 each) {
  return {.group = "threads",
          .name = std::to_string(threads) + " writers, WAL, " + synchronous,
          .place = Place::kWalFile,
          .wall = true,
          .setup =
              [](Session& s, i64) {
                s.exec("CREATE TABLE counter(id INTEGER PRIMARY KEY, n INT); BEGIN");
                for (int i = 0; i < 64; i++)
                  s.exec("INSERT INTO counter VALUES(" + std::to_string(i) + ", 0)");
                s.exec("COMMIT");
              },
          .run =
              [threads, synchronous, each](Session& s, i64) {
                in_threads(s, threads, [&](Session& mine, int number) {
                  mine.exec("PRAGMA synchronous=" + synchronous);
                  Statement update(mine, "UPDATE counter SET n = n + 1 WHERE id = ?1");
                  for (i64 i = 0; i < each && !mine.failed(); i++)
                    update.bind(1, i64{number}).run();
                });
                s.query("SELECT sum(n) FROM counter");
                return threads * each;
              }};
}

Workload readers_beside_a_writer() {
  return {.group = "threads",
          .name = "2 readers beside a writer, WAL",
          .place = Place::kWalFile,
          .wall = true,
          .setup = make_big,
          .run = [](Session& s, i64 rows) {
            in_threads(s, 3, [&](Session& mine, int number) {
              Statement update(mine, "UPDATE big SET x = x + 1 WHERE id = ?1");
              Statement read(mine, "SELECT name, note FROM big WHERE id = ?1");
              for (int i = 0; i < (number == 0 ? 1000 : 5000) && !mine.failed(); i++)
                (number == 0 ? update : read)
                    .bind(1, static_cast<i64>(mine.rng().below(static_cast<u64>(rows))) + 1)
                    .run();
            });
            return i64{11000};
          }};
}

}  // namespace

void add_mixes(std::vector<Workload>& all) {
  all.push_back(script_mix());
  all.push_back(shop_mix("TPC-C-like, memory", Place::kMemory));
  all.push_back(shop_mix("TPC-C-like, WAL file", Place::kWalFile));
  all.push_back(readers_beside_a_writer());
  all.push_back(writers(4, "NORMAL", 1000));
  all.push_back(writers(8, "FULL", 50));
}

}  // namespace bench
