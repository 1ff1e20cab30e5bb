// Runs h2spec with its strict cases against the HTTP/2 server, first in cleartext, then over TLS. See README.md.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fixedAnswer } from './fixed-answer.mjs';

const { values: options } = parseArgs({
  options: {
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    h2spec: { type: 'string', default: 'h2spec' },
  },
});
const { Http2Server } = (await import(`${options.dist}/grpc/http2/server.js`)).default;
const { listen } = (await import(`${options.dist}/net/listen.js`)).default;

function certificate() {
  const folder = mkdtempSync(join(tmpdir(), 'weir-h2spec-'));
  const key = join(folder, 'key.pem');
  const cert = join(folder, 'cert.pem');
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '1'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', cert], { stdio: 'pipe' });
  const pair = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  return pair;
}

async function conform(title, tls, flags) {
  const server = new Http2Server({
    tls,
    interpreter: await fixedAnswer(options.dist),
    onInternalError(error) {
      throw error;
    },
  });
  await listen(server.listener, { host: '127.0.0.1', port: 0 });
  process.stdout.write(`\n${title}\n`);
  const args = ['-S', '-h', '127.0.0.1', '-p', String(server.address.port), ...flags];
  const child = spawn(options.h2spec, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  const code = await new Promise((resolve, reject) => {
    child.once('error', (error) =>
      reject(new Error('h2spec was not found; bench/conformance/README.md says how to install it', { cause: error })),
    );
    child.once('exit', resolve);
  });
  // The whole report on failure, otherwise its last line, the totals.
  process.stdout.write(code === 0 ? `${output.trim().split('\n').at(-1)}\n` : output);
  await server.close();
  return code;
}

const codes = [await conform('cleartext', undefined, []), await conform('TLS', certificate(), ['-t', '-k'])];
process.exit(codes.every((code) => code === 0) ? 0 : 1);
