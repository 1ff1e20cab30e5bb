import { once } from 'node:events';
import { open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { selfSigned } from '../../support/data/certificates';
import { until } from '../../support/waiting/until';
import type { Answers, Attack, Target } from '../attack';
import { concurrently } from '../peers';

const MIB = 1_048_576;
const DAY = 86_400_000;

/** Adds a rule file, waits until it has been loaded or rejected, removes it, and waits again. */
async function ruleFile(target: Target, answers: Answers, write: (path: string) => Promise<unknown>): Promise<void> {
  const path = join(target.rules, 'attack.yaml');
  const before = await loads(target);
  await write(path);
  await until('the file is read', async () => (await loads(target)).total > before.total);
  answers.add((await loads(target)).rejected > before.rejected ? 'rejected' : 'accepted');
  const { accepted } = await loads(target);
  await rm(path);
  await until('the other files are loaded again', async () => (await loads(target)).accepted > accepted);
}

async function loads(target: Target): Promise<{ accepted: number; rejected: number; total: number }> {
  const accepted = await statistic(target, 'ratelimit.service.config_load_success');
  const rejected = await statistic(target, 'ratelimit.service.config_load_error');
  return { accepted, rejected, total: accepted + rejected };
}

async function statistic({ ports }: Target, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${ports.debug}/stats`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name}: `));
  return Number(line?.slice(name.length + 2) ?? 0);
}

async function sparseFile(path: string, bytes: number): Promise<void> {
  await (await open(path, 'w')).close();
  await truncate(path, bytes);
}

/** Replaces the certificate by one that expired yesterday, and looks at the one that new connections get. */
async function expiredCertificate(target: Target, answers: Answers): Promise<void> {
  const paths = ['tls.crt', 'tls.key'].map((name) => join(target.rules, '..', name));
  const before = await Promise.all(paths.map((path) => readFile(path)));
  const failures = await statistic(target, 'certs.load_failures');
  const { cert, key } = selfSigned(new Date(Date.now() - 90 * DAY), new Date(Date.now() - DAY));
  await Promise.all(paths.map((path, at) => writeFile(path, [cert, key][at]!)));
  await until('the certificate is rejected', async () => (await statistic(target, 'certs.load_failures')) > failures);
  await concurrently(10, 1, () => helloOverTls(target, answers));
  await Promise.all(paths.map((path, at) => writeFile(path, before[at]!)));
}

/** Opens a TLS connection, and records which certificate it gets. */
async function helloOverTls({ ports }: Target, answers: Answers): Promise<void> {
  const socket = connectTls({ port: ports.grpc, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false });
  socket.on('error', () => undefined);
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
  const { valid_to: end } = socket.getPeerCertificate();
  answers.add(
    end === undefined ? 'closed' : Date.parse(end) < Date.now() ? 'expired certificate' : 'valid certificate',
  );
  socket.destroy();
}

/** Files that the service reads while it runs. */
export const FILES = {
  'a rule file of 1.9 GB without content': {
    run: (target, answers) => ruleFile(target, answers, (path) => sparseFile(path, 1_900 * MIB)),
  },
  'a rule file with 32 MiB of blanks': {
    run: (target, answers) => ruleFile(target, answers, (path) => writeFile(path, Buffer.alloc(32 * MIB, ' '))),
  },
  'a certificate that has expired': { isTls: true, run: expiredCertificate },
} as const satisfies Record<string, Attack>;
