// The official OpenAI and Anthropic clients against the script server: plain and streamed replies, a round trip
// through a tool, token counts, typed errors and the clients' own retries.
// Usage: node drive.mjs URL. Prints one line a check; exits 1 when one fails.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const url = process.argv[2];
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'test-key', maxRetries: 2 });
const anthropic = new Anthropic({ baseURL: url, apiKey: 'test-key', maxRetries: 2 });

const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const openaiTools = [
  { type: 'function', function: { name: 'read', description: 'Reads.', parameters: schema } },
];
const anthropicTools = [{ name: 'read', description: 'Reads.', input_schema: schema }];

const ask = (text) => ({ model: 'scripted-1', messages: [{ role: 'user', content: text }] });
const askAnthropic = (text) => ({ ...ask(text), max_tokens: 256 });

const checks = {
  async openai_lists_models() {
    const names = [];
    for await (const model of openai.models.list()) names.push(model.id);
    assert.deepEqual(names, ['scripted-1']);
  },
  async openai_plain_reply_with_usage() {
    const reply = await openai.chat.completions.create(ask('hello'));
    assert.equal(reply.choices[0].message.content, 'Hällo, this is a scripted reply.');
    assert.equal(reply.choices[0].finish_reason, 'stop');
    assert.equal(reply.usage.prompt_tokens, 100);
    assert.equal(reply.usage.prompt_tokens_details.cached_tokens, 60);
    assert.equal(reply.usage.completion_tokens, 20);
  },
  async openai_streamed_reply_with_usage() {
    const stream = await openai.chat.completions.create({
      ...ask('hello'), stream: true, stream_options: { include_usage: true },
    });
    let text = '';
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, 'Hällo, this is a scripted reply.');
    assert.equal(usage.total_tokens, 120);
  },
  async openai_tool_round_trip() {
    const messages = [{ role: 'user', content: 'use the tool' }];
    for (const stream of [false, true]) {
      let message;
      if (stream) {
        const run = openai.beta.chat.completions.stream({
          model: 'scripted-1', messages, tools: openaiTools,
        });
        message = (await run.finalChatCompletion()).choices[0].message;
      } else {
        const reply = await openai.chat.completions.create({
          model: 'scripted-1', messages, tools: openaiTools,
        });
        assert.equal(reply.choices[0].finish_reason, 'tool_calls');
        message = reply.choices[0].message;
      }
      const call = message.tool_calls[0];
      assert.equal(call.function.name, 'read');
      assert.deepEqual(JSON.parse(call.function.arguments), { path: 'a.c' });
      const next = await openai.chat.completions.create({
        model: 'scripted-1',
        messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: 'int a;' }],
      });
      assert.equal(next.choices[0].message.content, 'The file declares a.');
    }
  },
  async openai_errors_are_typed() {
    await assert.rejects(openai.chat.completions.create(ask('forbidden')), (error) => {
      assert.ok(error instanceof OpenAI.PermissionDeniedError);
      assert.match(error.message, /not for you/);
      return true;
    });
  },
  async openai_retries_a_rate_limit() {
    const reply = await openai.chat.completions.create(ask('busy openai'));
    assert.equal(reply.choices[0].message.content, 'free again');
  },
  async openai_notices_a_broken_stream() {
    await assert.rejects(async () => {
      const stream = await openai.chat.completions.create({ ...ask('broken'), stream: true });
      for await (const chunk of stream) assert.ok(chunk);
    });
  },
  async anthropic_plain_reply_with_usage() {
    const reply = await anthropic.messages.create(askAnthropic('hello'));
    assert.equal(reply.content[0].text, 'Hällo, this is a scripted reply.');
    assert.equal(reply.stop_reason, 'end_turn');
    assert.equal(reply.usage.input_tokens, 40);
    assert.equal(reply.usage.cache_read_input_tokens, 60);
    assert.equal(reply.usage.output_tokens, 20);
  },
  async anthropic_streamed_reply_with_thinking() {
    const stream = anthropic.messages.stream(askAnthropic('think'));
    let streamed = '';
    stream.on('text', (text) => { streamed += text; });
    const reply = await stream.finalMessage();
    assert.equal(streamed, 'Thought about it.');
    assert.equal(reply.content[0].type, 'thinking');
    assert.equal(reply.content[0].thinking, 'Let me see.');
    assert.equal(reply.content[0].signature, 'sig-scripted');
    assert.equal(reply.content[1].text, 'Thought about it.');
  },
  async anthropic_tool_round_trip() {
    for (const stream of [false, true]) {
      const messages = [{ role: 'user', content: 'use the tool' }];
      const body = { model: 'scripted-1', max_tokens: 256, messages, tools: anthropicTools };
      const reply = stream ? await anthropic.messages.stream(body).finalMessage()
                           : await anthropic.messages.create(body);
      assert.equal(reply.stop_reason, 'tool_use');
      const call = reply.content.find((block) => block.type === 'tool_use');
      assert.deepEqual(call.input, { path: 'a.c' });
      messages.push({ role: 'assistant', content: reply.content });
      messages.push({ role: 'user', content: [
        { type: 'tool_result', tool_use_id: call.id, content: 'int a;' }] });
      const next = await anthropic.messages.create(body);
      assert.equal(next.content[0].text, 'The file declares a.');
    }
  },
  async anthropic_errors_are_typed() {
    await assert.rejects(anthropic.messages.create(askAnthropic('forbidden')), (error) => {
      assert.ok(error instanceof Anthropic.PermissionDeniedError);
      assert.equal(error.error.error.type, 'permission_error');
      return true;
    });
  },
  async anthropic_retries_an_overload() {
    const reply = await anthropic.messages.create(askAnthropic('busy anthropic'));
    assert.equal(reply.content[0].text, 'free again');
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok ${name} ${error.stack}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
