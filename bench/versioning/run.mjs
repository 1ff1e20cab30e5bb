// The CPU time of a request to a versioned route, beside bare Koa and routes of @koa/router without versions. The applications are
// processes that take turns; the fastest of the turns counts.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

const ROUNDS = 9;
const REQUESTS = 20_000;
const CONNECTIONS = 20;

const NONE = '';
const VERSION = 'Accept: application/vnd.acme+json;version=1\r\n';
const LIST = 'Accept: text/html;q=0.5, application/vnd.acme + json ; version = 1 ; q=0.9, */*;q=0.1\r\n';

/** Each with its arguments for server.mjs, the resource that is requested, and the header. */
const VARIANTS = [
  ['koa alone', ['koa'], 0, NONE],
  ['plain, 14 routes', ['plain', 2], 1, NONE],
  ['versioned, 14 routes, no header', ['versioned', 2, 1], 1, NONE],
  ['versioned, 14 routes, a version', ['versioned', 2, 1], 1, VERSION],
  ['versioned, 14 routes, a list of types', ['versioned', 2, 1], 1, LIST],
  ['plain, 1,001 routes', ['plain', 143], 142, NONE],
  ['versioned, 1,001 routes, a version', ['versioned', 143, 1], 142, VERSION],
  ['versioned, 1,001 routes in 11 versions', ['versioned', 143, 11], 12, VERSION],
  ['versioned, 10,010 routes, a version', ['versioned', 1430, 1], 1429, VERSION],
];

/** Sends requests on several connections, one after the other on each, and counts answers. */
async function load(port, request) {
  let left = REQUESTS;
  const bytes = Buffer.from(request);
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(port, '127.0.0.1').setNoDelay();
      await once(socket, 'connect');
      socket.on('data', (chunk) => {
        if (!chunk.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(chunk.toString());
        left -= 1;
        if (left > 0) socket.write(bytes);
        else socket.destroy();
      });
      socket.write(bytes);
      await once(socket, 'close');
    }),
  );
}

async function start([name, args, resource, header]) {
  const child = fork(new URL('server.mjs', import.meta.url), args.map(String));
  const [port] = await once(child, 'message');
  const request = `GET /api/resource-${resource}/3 HTTP/1.1\r\nHost: localhost\r\n${header}\r\n`;
  return { name, child, port, request, fastest: Number.POSITIVE_INFINITY };
}

async function cpuTime({ child }) {
  child.send('cpu');
  const [time] = await once(child, 'message');
  return time;
}

const servers = await Promise.all(VARIANTS.map(start));
try {
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const server of servers) {
      const before = await cpuTime(server);
      await load(server.port, server.request);
      server.fastest = Math.min(server.fastest, ((await cpuTime(server)) - before) / REQUESTS);
    }
  }
  const [koa] = servers;
  for (const { name, fastest } of servers) {
    const ratio = (fastest / koa.fastest).toFixed(2);
    console.log(`${name.padEnd(42)}${fastest.toFixed(1).padStart(8)} µs, ratio ${ratio.padStart(6)}`);
  }
} finally {
  for (const { child } of servers) child.kill();
}
