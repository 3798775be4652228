// The official openai client against a running server: chat, streaming, tools, a JSON schema,
// logprobs, cancellation, errors. Exits 0 when everything holds.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const ask = (content, more = {}) =>
  ({ model, messages: [{ role: 'user', content }], temperature: 0, max_tokens: 60, ...more });

const plain = await client.chat.completions.create(ask('Name three fruits.'));
assert.match(plain.choices[0].message.content, /banana|apple|orange/i);
assert.equal(plain.choices[0].finish_reason, 'stop');

let text = '';
let usage;
for await (const part of await client.chat.completions.create(
  ask('Name three fruits.', { stream: true, stream_options: { include_usage: true } }))) {
  text += part.choices[0]?.delta?.content ?? '';
  usage = part.usage ?? usage;
}
assert.equal(text, plain.choices[0].message.content, 'streamed and whole answers are equal');
assert.ok(usage.prompt_tokens_details.cached_tokens > 0, 'the second prompt came from the cache');

const schema = {
  type: 'object', additionalProperties: false, required: ['name', 'age', 'colours'],
  properties: { name: { type: 'string', maxLength: 20 }, age: { type: 'integer' },
                colours: { type: 'array', items: { enum: ['red', 'green', 'blue'] }, minItems: 1, maxItems: 3 } },
};
const held = await client.chat.completions.create(ask('Describe a person.', {
  max_tokens: 200, response_format: { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } } }));
const person = JSON.parse(held.choices[0].message.content);
assert.ok(Number.isInteger(person.age) && person.colours.length >= 1);

const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 30 } }, required: ['city'] } } }];
const called = await client.chat.completions.create(
  ask('What is the weather in Paris?', { tools, tool_choice: 'required', max_tokens: 200 }));
const call = called.choices[0].message.tool_calls[0];
assert.equal(called.choices[0].finish_reason, 'tool_calls');
assert.equal(call.function.name, 'get_weather');
assert.equal(typeof JSON.parse(call.function.arguments).city, 'string');
const runner = client.chat.completions.stream(
  ask('What is the weather in Paris?', { tools, tool_choice: 'required', max_tokens: 200 }));
assert.deepEqual((await runner.finalChatCompletion()).choices[0].message.tool_calls[0].function.arguments,
                 call.function.arguments, 'streamed and whole calls are equal');
const after = await client.chat.completions.create({ model, temperature: 0, max_tokens: 40, messages: [
  { role: 'user', content: 'What is the weather in Paris?' }, called.choices[0].message,
  { role: 'tool', tool_call_id: call.id, content: 'Sunny, 21 degrees.' }] });
assert.ok(after.choices[0].message.content.length > 0);

const logged = await client.chat.completions.create(ask('Hi', { max_tokens: 4, logprobs: true, top_logprobs: 3 }));
assert.equal(logged.choices[0].logprobs.content[0].top_logprobs.length, 3);

const many = await client.chat.completions.create(ask('Say a word.', { n: 3, temperature: 1, seed: 5, max_tokens: 8 }));
assert.equal(many.choices.length, 3);

const aborted = await client.chat.completions.create(ask('Count to one thousand.', { stream: true, max_tokens: 1500 }));
let pieces = 0;
for await (const part of aborted) {
  if (part && ++pieces === 5) aborted.controller.abort();
}
// What had arrived already may still be handed out; the whole answer may not.
assert.ok(pieces >= 5 && pieces < 500, `${pieces} pieces after aborting at the fifth`);

const completed = await client.completions.create({ model, prompt: 'Water is made of', temperature: 0, max_tokens: 12 });
assert.ok(completed.choices[0].text.length > 10);

await assert.rejects(client.chat.completions.create(ask('x', { temperature: 9 })), { status: 400 });
await assert.rejects(new OpenAI({ baseURL: process.env.BASE_URL, apiKey: 'wrong', maxRetries: 0 }).models.list(), { status: 401 });

// The aborted request must have given its slot back.
for (let i = 0; i < 100; ++i) {
  const metrics = await (await fetch(process.env.BASE_URL.replace('/v1', '/metrics'),
                                     { headers: { authorization: 'Bearer ' + process.env.API_KEY } })).text();
  if (/^fleetlm_running 0$/m.test(metrics) && /^fleetlm_requests_cancelled_total 1$/m.test(metrics)) process.exit(0);
  await new Promise((resolve) => setTimeout(resolve, 100));
}
assert.fail('the aborted request is still running');
