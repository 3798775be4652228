// A cassette is a JSON-lines file of HTTP exchanges with a model server: request hash, request,
// status, headers that matter, the body in pieces with the delays between them. With it a run can
// be repeated without a model, byte for byte.
//
// The key of an exchange is the SHA-256 of the canonical request body plus an ordinal that tells
// equal requests apart. Authorization never reaches the file; values registered as secrets and text
// that looks like a key are replaced on the way in.
//
// Line: {"v":1,"key":"<hex>","n":0,"path":"/v1/chat/completions","request":{...},"status":200,
//        "headers":{"content-type":"..."},"chunks":[[delay_ms,"text"],...],"end":"ok"|"broken"}
// A first line {"v":1,"about":{...}} says what was recorded.
// Errors: kCorruption with the line number for a damaged file. Thread-safe.
#pragma once

#include "base/json.h"
#include "team/model/transport.h"

#include <memory>
#include <string>
#include <vector>

namespace team {

enum class CassetteMode {
  kRecord,  // always live, every exchange appended
  kReplay,  // from the file; a miss goes nowhere: kNotFound
  kStrict,  // as kReplay, and the error shows the difference to the nearest request; unused
            // left-overs count
  kAuto,    // from the file, live and recorded on a miss
};

class Cassette : public Transport {
 public:
  struct Options {
    std::string path;
    CassetteMode mode = CassetteMode::kStrict;
    std::vector<std::string> secrets;
    bool keep_delays = false;  // sleep as the recording did
    bool keep = false;         // kRecord: add to a file that is there instead of replacing it
    base::Json about;          // kRecord: for the first line of a new file
  };
  // `live` may be null for replay and strict; it outlives the cassette.
  static base::Result<std::unique_ptr<Cassette>> open(Options options, Transport* live);
  ~Cassette() override;
  // What the first line says, null when it says nothing, and the first exchange's request and path
  // as
  // {"about":, "path":, "request":}. Errors: kNotFound; kInvalidArgument for a file that is no
  // cassette.
  static base::Result<base::Json> look_at(const std::string& path);
  base::Result<base::HttpResponse> send(const base::HttpRequest& request,
                                        const base::HttpHeadSink& on_head,
                                        const base::HttpBodySink& on_body) override;
  size_t size() const;    // exchanges on it
  size_t unused() const;  // not asked for yet

 private:
  struct Impl;
  explicit Cassette(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Replaces registered secrets and key-like text ("sk-...", "Bearer ...") by "[redacted]".
std::string redact(std::string text, const std::vector<std::string>& secrets);

// Where two JSON documents differ first and how, as "messages[3].content: ... | ...". For people.
std::string describe_difference(const base::Json& wanted, const base::Json& found);

}  // namespace team
