// The small chat page at /: one file, no dependencies, streams over the public API.
#include "llm/server/server.h"

namespace llm {

const char* const kChatPage = R"page(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>FleetLM</title><style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem;display:flex;flex-direction:column;height:100vh;box-sizing:border-box}
#log{flex:1;overflow:auto}
.user{font-weight:600;margin-top:1rem}.bot{white-space:pre-wrap}.think{opacity:.6;font-style:italic;white-space:pre-wrap}
form{display:flex;gap:.5rem;padding-top:.5rem}textarea{flex:1;font:inherit;padding:.5rem;resize:none}
button{font:inherit;padding:.5rem 1rem}small{opacity:.6}
</style></head><body>
<header><strong>FleetLM</strong> <small id="model"></small></header>
<div id="log" aria-live="polite"></div>
<form id="form"><textarea id="text" rows="2" placeholder="Say something" autofocus></textarea><button id="go">Send</button></form>
<script>
const log=document.getElementById('log'),text=document.getElementById('text'),go=document.getElementById('go');
const messages=[];let controller=null;
const key=new URLSearchParams(location.hash.slice(1)).get('key');
const headers={'content-type':'application/json',...(key?{authorization:'Bearer '+key}:{})};
fetch('/v1/models',{headers}).then(r=>r.json()).then(m=>document.getElementById('model').textContent=m.data?.[0]?.id??'');
function line(kind,content=''){const d=document.createElement('div');d.className=kind;d.textContent=content;log.append(d);log.scrollTop=log.scrollHeight;return d}
async function send(){
  const content=text.value.trim();if(!content)return;text.value='';
  messages.push({role:'user',content});line('user',content);
  const think=line('think'),bot=line('bot');controller=new AbortController();go.textContent='Stop';
  let answer='';const started=performance.now();let count=0;
  try{
    const r=await fetch('/v1/chat/completions',{method:'POST',headers,signal:controller.signal,
      body:JSON.stringify({messages,stream:true,temperature:.6,top_p:.95,stream_options:{include_usage:true}})});
    if(!r.ok)throw new Error((await r.json()).error.message);
    const reader=r.body.pipeThrough(new TextDecoderStream()).getReader();let buffer='';
    for(;;){const{value,done}=await reader.read();if(done)break;buffer+=value;
      let at;while((at=buffer.indexOf('\n\n'))>=0){const data=buffer.slice(6,at);buffer=buffer.slice(at+2);
        if(data==='[DONE]')continue;const j=JSON.parse(data);if(j.usage)count=j.usage.completion_tokens;
        const d=j.choices[0]?.delta;if(d?.reasoning_content)think.textContent+=d.reasoning_content;
        if(d?.content){answer+=d.content;bot.textContent=answer}log.scrollTop=log.scrollHeight}}
    const s=(performance.now()-started)/1000;line('small',count+' tokens, '+(count/s).toFixed(1)+' a second');
  }catch(e){if(e.name!=='AbortError')line('bot','Error: '+e.message)}
  messages.push({role:'assistant',content:answer});controller=null;go.textContent='Send';
}
document.getElementById('form').onsubmit=e=>{e.preventDefault();controller?controller.abort():send()};
text.onkeydown=e=>{if(e.key==='Enter'&&!e.shiftKey){e.preventDefault();if(!controller)send()}};
</script></body></html>
)page";

}  // namespace llm
