// Any bytes may come from a model server. The first byte picks the protocol, the rest is the
// stream. Fed whole or byte by byte it must give the same reply; decoding and error reading must
// survive it as a body too.
#include "base/check.h"
#include "team/model/codec.h"

namespace {

struct Outcome {
  std::string text;
  size_t calls = 0;
  bool ok = true;
};

Outcome feed(const team::Codec& codec, std::string_view stream, size_t step) {
  const std::unique_ptr<team::StreamDecoder> decoder = codec.stream_decoder();
  base::SseParser parser;
  Outcome outcome;
  for (size_t at = 0; at < stream.size(); at += step) {
    parser.feed(stream.substr(at, step), [&](const base::SseParser::Event& event) {
      if (outcome.ok) outcome.ok = decoder->feed(event, {}).ok();
    });
  }
  decoder->finish();
  team::harden(decoder->reply(), stream.size());
  CHECK(decoder->reply().usage.input() >= 0);
  CHECK(decoder->reply().usage.output() >= 0);
  outcome.text = decoder->reply().message.text;
  outcome.calls = decoder->reply().message.tool_calls.size();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size) {
  if (size == 0) return 0;
  const team::Codec& codec =
      team::codec_for(data[0] % 2 == 0 ? team::ApiKind::kOpenAiChat : team::ApiKind::kAnthropic);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = feed(codec, stream, stream.size() + 1);
  const Outcome bytes = feed(codec, stream, 1);
  CHECK(whole.ok == bytes.ok && whole.text == bytes.text && whole.calls == bytes.calls);
  base::Result<team::ModelReply> reply = codec.decode(stream);
  if (reply.ok()) team::harden(*reply, size);
  const base::HttpHeaders headers = {{"retry-after", std::string(stream)}};
  CHECK(team::retry_after_ms(headers, 0) >= -1);
  CHECK(!team::classify_http_error(500, headers, stream).error.empty());
  return 0;
}
