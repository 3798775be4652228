// How other programs talk to a running mount: a Unix socket beside the store, one JSON object a
// line each way. {"command": "status"} -> {"ok": true, ...} or {"ok": false, "error": "a
// sentence"}. Only the user who mounted can connect (mode 0600).
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace fs {

class ControlServer {
 public:
  // Runs on the server's thread, one call at a time.
  using Handler = std::function<base::Json(const base::Json& request)>;
  // Takes the place of a socket that nobody listens on. Errors: kBusy when somebody does.
  static base::Result<std::unique_ptr<ControlServer>> start(const std::string& path,
                                                            Handler handler);
  ~ControlServer();

 private:
  ControlServer(std::string path, int fd, int stop_fd, Handler handler);
  void serve();
  void serve_one(int connection);

  std::string path_;
  int fd_;
  int stop_fd_;
  Handler handler_;
  std::thread thread_;
};

// One exchange. Errors: kUnavailable when nobody listens there; the server's sentence as kInternal.
base::Result<base::Json> control_call(const std::string& path, const base::Json& request);

}  // namespace fs
