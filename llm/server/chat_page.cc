// The chat page at /: one file, no dependencies, streams over the public API. Text from the model
// reaches the page as text nodes only, never as markup.
#include "llm/server/server.h"

namespace llm {

const char* const kChatPage = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>FleetLM</title><style>
:root{color-scheme:light dark;--bg:#fbfaf8;--panel:#fff;--ink:#1d1c1a;--soft:#77726a;--line:#e6e2da;--accent:#2f6f5e;--mine:#e9f1ee;--code:#f4f1eb}
@media(prefers-color-scheme:dark){:root{--bg:#151719;--panel:#1d2023;--ink:#e8e6e1;--soft:#938f87;--line:#2d3135;--accent:#7cc4ad;--mine:#22322d;--code:#121416}}
*{box-sizing:border-box}
body{margin:0;height:100dvh;display:flex;flex-direction:column;background:var(--bg);color:var(--ink);font:16px/1.6 ui-sans-serif,system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header{display:flex;align-items:center;gap:.75rem;padding:.7rem 1.25rem;border-bottom:1px solid var(--line);background:var(--panel)}
header b{letter-spacing:-.01em;font-size:1.05rem}header .dot{width:.6rem;height:.6rem;border-radius:50%;background:var(--accent)}
#model{color:var(--soft);font-size:.85rem;flex:1;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
button{font:inherit;border:1px solid var(--line);background:var(--panel);color:var(--ink);border-radius:.6rem;padding:.35rem .8rem;cursor:pointer}
button:hover{border-color:var(--accent)}button:focus-visible,textarea:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
main{flex:1;overflow-y:auto;padding:1.5rem 1.25rem}
#log{max-width:46rem;margin:0 auto;display:flex;flex-direction:column;gap:1.1rem}
.user{align-self:flex-end;max-width:85%;background:var(--mine);border-radius:1.1rem 1.1rem .3rem 1.1rem;padding:.55rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere}
.bot{overflow-wrap:anywhere}.bot p{margin:0 0 .7rem}.bot p:last-child{margin-bottom:0}.bot ul,.bot ol{margin:0 0 .7rem;padding-left:1.4rem}.bot h4{margin:.3rem 0 .5rem;font-size:1.05rem}
.bot code{background:var(--code);border-radius:.3rem;padding:.1rem .3rem;font:.87em ui-monospace,"DejaVu Sans Mono",monospace}
.bot pre{position:relative;background:var(--code);border:1px solid var(--line);border-radius:.7rem;padding:.8rem 1rem;overflow-x:auto;margin:0 0 .8rem;line-height:1.45}.bot pre code{background:none;padding:0}
.bot pre button{position:absolute;top:.4rem;right:.4rem;font-size:.72rem;padding:.1rem .5rem;opacity:0}.bot pre:hover button,.bot pre button:focus{opacity:1}
.busy::after{content:"";display:inline-block;width:.55rem;height:1.05rem;margin-left:.15rem;vertical-align:-.15rem;background:var(--accent);border-radius:2px;animation:blink 1s steps(2) infinite}@keyframes blink{50%{opacity:0}}
details{color:var(--soft);font-size:.9rem;border-left:3px solid var(--line);padding-left:.8rem;white-space:pre-wrap}summary{cursor:pointer}
.meta{color:var(--soft);font-size:.78rem;margin-top:-.7rem}.error{color:#b3402f}
#hello{max-width:46rem;margin:16vh auto 0;text-align:center}#hello h1{font-weight:600;letter-spacing:-.02em;margin:0 0 .3rem}#hello p{color:var(--soft);margin:0 0 1.4rem}
#ideas{display:flex;flex-wrap:wrap;gap:.5rem;justify-content:center}
form{max-width:48.5rem;width:100%;margin:0 auto;padding:.4rem 1.25rem 1.1rem}
.box{display:flex;align-items:flex-end;gap:.5rem;background:var(--panel);border:1px solid var(--line);border-radius:1.2rem;padding:.5rem .5rem .5rem 1rem;box-shadow:0 2px 14px #0000000d}.box:focus-within{border-color:var(--accent)}
textarea{flex:1;font:inherit;border:0;background:none;color:inherit;resize:none;max-height:30vh;padding:.25rem 0}textarea:focus-visible{outline:none}
#go{background:var(--accent);border-color:var(--accent);color:var(--bg);font-weight:600;border-radius:.8rem}
</style></head><body>
<header><span class="dot"></span><b>FleetLM</b><span id="model"></span><button id="fresh" type="button">New chat</button></header>
<main id="scroll"><div id="hello"><h1>What shall we talk about?</h1><p>Everything runs on this machine.</p><div id="ideas"></div></div><div id="log" aria-live="polite"></div></main>
<form id="form"><div class="box"><textarea id="text" rows="1" placeholder="Write a message" aria-label="Message" autofocus></textarea><button id="go">Send</button></div></form>
<script>
'use strict';
const by=id=>document.getElementById(id),log=by('log'),text=by('text'),go=by('go'),scroller=by('scroll');
const key=new URLSearchParams(location.hash.slice(1)).get('key');
const headers={'content-type':'application/json',...(key?{authorization:'Bearer '+key}:{})};
let messages=[],controller=null;
function element(tag,kind,content){const e=document.createElement(tag);if(kind)e.className=kind;if(content!==undefined)e.textContent=content;return e}
function add(e){const stay=scroller.scrollHeight-scroller.scrollTop-scroller.clientHeight<80;log.append(e);if(stay)follow();return e}
function follow(){scroller.scrollTop=scroller.scrollHeight}
// The little of Markdown that models write: code, lists, headings, bold.
function inline(into,line){for(const part of line.split(/(`[^`]+`|\*\*[^*]+\*\*)/)){
  if(/^`[^`]+`$/.test(part))into.append(element('code','',part.slice(1,-1)));
  else if(/^\*\*[^*]+\*\*$/.test(part))into.append(element('strong','',part.slice(2,-2)));
  else into.append(part)}}
function code(lines){const pre=element('pre'),copy=element('button','','Copy');copy.type='button';
  const body=lines.join('\n');copy.onclick=()=>navigator.clipboard?.writeText(body).then(()=>copy.textContent='Copied');
  pre.append(element('code','',body),copy);return pre}
function render(into,source){into.replaceChildren();let list=null,paragraph=null;const lines=source.split('\n');
  for(let i=0;i<lines.length;i++){const line=lines[i];
    if(line.startsWith('```')){const body=[];while(++i<lines.length&&!lines[i].startsWith('```'))body.push(lines[i]);into.append(code(body));list=paragraph=null;continue}
    const item=line.match(/^\s*(?:([-*])|(\d+)[.)])\s+(.*)/),head=line.match(/^#{1,4}\s+(.*)/);
    if(item){const tag=item[1]?'UL':'OL';if(list?.tagName!==tag){list=element(tag.toLowerCase());if(item[2])list.start=+item[2];into.append(list)}const li=element('li');inline(li,item[3]);list.append(li);paragraph=null}
    else if(head){const h=element('h4');inline(h,head[1]);into.append(h);list=paragraph=null}
    else if(!line.trim()){list=paragraph=null}
    else{if(paragraph)paragraph.append(document.createElement('br'));else{paragraph=element('p');into.append(paragraph)}inline(paragraph,line);list=null}}}
async function send(content){
  const talk=messages;by('hello').hidden=true;talk.push({role:'user',content});add(element('div','user',content));follow();
  const think=element('details'),thought=element('span'),bot=add(element('div','bot busy'));think.append(element('summary','','Reasoning'),thought);
  controller=new AbortController();go.textContent='Stop';
  let answer='',usage=null;const started=performance.now();
  try{
    const reply=await fetch('/v1/chat/completions',{method:'POST',headers,signal:controller.signal,
      body:JSON.stringify({messages:talk,stream:true,temperature:.6,top_p:.95,stream_options:{include_usage:true}})});
    if(!reply.ok)throw new Error((await reply.json()).error.message);
    const reader=reply.body.pipeThrough(new TextDecoderStream()).getReader();let buffer='';
    for(;;){const{value,done}=await reader.read();if(done)break;buffer+=value;
      const stay=scroller.scrollHeight-scroller.scrollTop-scroller.clientHeight<80;
      for(let at;(at=buffer.indexOf('\n\n'))>=0;){const data=buffer.slice(6,at);buffer=buffer.slice(at+2);
        if(data==='[DONE]')continue;const event=JSON.parse(data);if(event.error)throw new Error(event.error.message);
        if(event.usage)usage=event.usage;const delta=event.choices[0]?.delta;
        if(delta?.reasoning_content){if(!think.isConnected)bot.before(think);thought.textContent+=delta.reasoning_content}
        if(delta?.content)answer+=delta.content}
      render(bot,answer);if(stay)follow()}
    if(usage){const s=(performance.now()-started)/1000,d=usage.completion_tokens_details??{};
      const guessed=d.accepted_prediction_tokens?', '+d.accepted_prediction_tokens+' of them guessed ahead':'';
      add(element('div','meta',usage.completion_tokens+' tokens in '+s.toFixed(1)+' s, '+(usage.completion_tokens/s).toFixed(0)+' a second'+guessed))}
  }catch(e){if(e.name!=='AbortError')add(element('div','error',e.message));else add(element('div','meta','stopped'))}
  bot.classList.remove('busy');if(answer)talk.push({role:'assistant',content:answer});else talk.pop();
  controller=null;go.textContent='Send';text.focus()}
by('form').onsubmit=e=>{e.preventDefault();if(controller)return controller.abort();const content=text.value.trim();if(!content)return;text.value='';grow();send(content)};
function grow(){text.style.height='auto';text.style.height=text.scrollHeight+'px'}
text.oninput=grow;
text.onkeydown=e=>{if(e.key==='Enter'&&!e.shiftKey&&!e.isComposing){e.preventDefault();if(!controller)by('form').requestSubmit()}};
by('fresh').onclick=()=>{controller?.abort();messages=[];log.replaceChildren();by('hello').hidden=false;text.focus()};
for(const idea of['Explain how a bicycle stays upright.','Write a Python function that reverses words.','Name three fruits and a dish with each.']){
  const b=element('button','',idea);b.type='button';b.onclick=()=>{if(!controller)send(idea)};by('ideas').append(b)}
fetch('/v1/models',{headers}).then(async r=>{const m=await r.json();by('model').textContent=r.ok?m.data[0].id+' \u00b7 '+m.data[0].context_length+' tokens':'Open this page with #key=YOUR_KEY at the end of its address.'}).catch(()=>{by('model').textContent='not reachable'});
</script></body></html>
)page";

}  // namespace llm
