// A gateway to a language model that keeps every customer within a budget of tokens. It reserves an estimate, and
// settles what the answer has used.
import { createServer } from 'node:http';

const { WEIR = 'http://127.0.0.1:8080', MODEL = 'http://127.0.0.1:9000', PORT = '10000' } = process.env;
const JSON_TYPE = { 'content-type': 'application/json' };

function weir(method, path, body) {
  const init = { method, body: JSON.stringify(body), signal: AbortSignal.timeout(1_000) };
  return fetch(`${WEIR}/v1/reservations${path}`, init);
}

async function serve(request, response) {
  const body = Buffer.concat(await request.toArray());
  const descriptors = [{ entries: [{ key: 'customer', value: request.headers['x-customer'] ?? 'unknown' }] }];
  // Four bytes of a prompt are about one token; the answer has max_tokens at most.
  const hitsAddend = Math.ceil(body.length / 4) + (JSON.parse(body).max_tokens ?? 1_000);
  // If this process dies, nothing settles the reservation: after two minutes the tokens are given back.
  const budget = { domain: 'tokens', descriptors, hitsAddend, ttl: '120s', on_expiry: 'cancel' };
  const reserved = await weir('POST', '', budget);
  if (reserved.status !== 201) return response.writeHead(reserved.status === 429 ? 429 : 503).end();
  const { id } = await reserved.json();
  try {
    const answer = await fetch(MODEL + request.url, { method: request.method, headers: JSON_TYPE, body });
    const text = await answer.text();
    const hits = String(answer.ok ? JSON.parse(text).usage.total_tokens : 0);
    await weir('POST', `/${id}/settle`, { hits }).catch(() => undefined);
    return response.writeHead(answer.status, JSON_TYPE).end(text);
  } catch (error) {
    await weir('DELETE', `/${id}`);
    throw error;
  }
}

createServer((request, response) => {
  serve(request, response).catch(() => response.headersSent || response.writeHead(502).end());
}).listen(Number(PORT), '127.0.0.1');
