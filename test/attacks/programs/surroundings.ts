import { once } from 'node:events';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { selfSigned } from '../../support/data/certificates';
import { requestMessage } from '../../support/clients/grpc-client';
import { simpleResource } from '../../support/data/rule-resources';
import type { AdsServerStream } from '../../support/servers/ads-server';
import { type Answers, type Attack, type Target, GrpcPeer, concurrently } from '../peers';
import { WELL_BEHAVED_RESOURCE } from '../well-behaved-client';

const MIB = 1_048_576;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function statistic({ weir }: Target, name: string): Promise<number> {
  return (await weir.statistics()).get(name) ?? 0;
}

const ACCEPTED = 'ratelimit.service.config_load_success';
const REJECTED = 'ratelimit.service.config_load_error';

/** Adds a rule file, waits until it has been loaded or rejected, removes it, and waits again. */
function ruleFile(write: (path: string) => Promise<unknown>): Attack['run'] {
  return async (target, answers) => {
    const before = await target.weir.statistics();
    function hasGrown(now: ReadonlyMap<string, number>, name: string) {
      return (now.get(name) ?? 0) > (before.get(name) ?? 0);
    }
    await write(join(target.rules.root, 'config/attack.yaml'));
    const outcome = await target.weir.until('the file is read', async () => {
      const now = await target.weir.statistics();
      return hasGrown(now, REJECTED) ? 'rejected' : hasGrown(now, ACCEPTED) && 'accepted';
    });
    answers.add(outcome);
    const accepted = await statistic(target, ACCEPTED);
    await target.rules.remove('attack.yaml');
    await target.weir.until(
      'the other files are loaded again',
      async () => (await statistic(target, ACCEPTED)) > accepted,
    );
  };
}

async function sparseFile(path: string, bytes: number): Promise<void> {
  await writeFile(path, '');
  await truncate(path, bytes);
}

/** Replaces the certificate by one that expired yesterday, and looks at the one that new connections get. */
async function expiredCertificate(target: Target, answers: Answers): Promise<void> {
  const failures = await statistic(target, 'certs.load_failures');
  const { cert, key } = selfSigned(new Date(Date.now() - 90 * DAY), new Date(Date.now() - DAY));
  await writeFile(join(target.rules.root, 'tls.crt'), cert);
  await writeFile(join(target.rules.root, 'tls.key'), key);
  await target.weir.until('the certificate is rejected', async () => {
    return (await statistic(target, 'certs.load_failures')) > failures;
  });
  const at = { port: target.ports.grpc, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false };
  for (let connection = 0; connection < 10; connection += 1) {
    const socket = connectTls(at).on('error', () => undefined);
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
    const { valid_to: end } = socket.getPeerCertificate();
    answers.add(end === undefined ? 'closed' : `${Date.parse(end) < Date.now() ? 'expired' : 'valid'} certificate`);
    socket.destroy();
  }
}

/** Files that the service reads while it runs. */
export const FILES = {
  'a rule file of 1.9 GB without content': { run: ruleFile((path) => sparseFile(path, 1_900 * MIB)) },
  'a rule file with 32 MiB of blanks': { run: ruleFile((path) => writeFile(path, Buffer.alloc(32 * MIB, ' '))) },
  'a certificate that has expired': { isTls: true, run: expiredCertificate },
} as const satisfies Record<string, Attack>;

/**
 * Sends responses for 3 s as fast as the service takes them, and records how many loads and log lines they have caused.
 */
function responses(send: (ads: AdsServerStream, version: number) => void): Attack['run'] {
  return async (target, answers) => {
    const { ads, weir } = target;
    async function loads() {
      return (await statistic(target, ACCEPTED)) + (await statistic(target, REJECTED));
    }
    function lines() {
      return weir.output.split('\n').length;
    }
    const [loadsBefore, linesBefore, start] = [await loads(), lines(), Date.now()];
    for (let version = 1; Date.now() < start + 3_000;) {
      for (; !ads!.isFull; version += 1) send(ads!, version);
      await new Promise(setImmediate);
    }
    const [newLoads, newLines] = [(await loads()) - loadsBefore, lines() - linesBefore];
    // Before they come once a second they come after 100, 200 and 400 ms.
    const most = (Date.now() - start) / 1_000 + 4;
    if (newLoads > most) answers.add(`${newLoads} loads`);
    else answers.add(newLoads > 0 ? 'a load a second' : 'no load');
    if (newLines > most) answers.add(`${newLines} lines`);
  };
}

/** What a management server does by mistake, or when an attacker has taken it over. */
export const MANAGEMENT_SERVER = {
  'new versions for 3 s': {
    isXds: true,
    run: responses((ads, version) => ads.send(`${version}`, [WELL_BEHAVED_RESOURCE, simpleResource('x', version)])),
  },
  'new versions with errors for 3 s': {
    isXds: true,
    run: responses((ads, version) => ads.send(`${version}`, [simpleResource('', version)])),
  },
  'the same version for 3 s': {
    isXds: true,
    run: responses((ads) => ads.send('0', [WELL_BEHAVED_RESOURCE])),
  },
} as const satisfies Record<string, Attack>;

/** Sends the same message many times. */
function calls(count: number, message: Buffer): Attack['run'] {
  return async (target, answers) => {
    using peer = new GrpcPeer(target, answers);
    await concurrently(count, 50, () => peer.call(message));
  };
}

/** Sends each signal many times, and records whether Node has opened its inspector. */
function signals(...names: readonly NodeJS.Signals[]): Attack['run'] {
  return async ({ weir }, answers) => {
    for (let round = 0; round < 50; round += 1) {
      for (const name of names) weir.signal(name);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    answers.add(/Debugger listening/.test(weir.output) ? 'an inspector' : 'sent');
  };
}

/** Uses up a limit, and calls again while the clock of the service is two hours ahead, and when it is right again. */
async function jumpingClock(target: Target, answers: Answers): Promise<void> {
  async function call(when: string) {
    const received: Answers = new Set();
    using peer = new GrpcPeer(target, received);
    for (let count = 0; count < 10; count += 1) await peer.call(requestMessage('clock', ['k=x']));
    for (const answer of received) answers.add(`${answer} ${when}`);
  }
  await call('before');
  for (const [direction, when] of [
    ['ahead', 'ahead'],
    ['back', 'after'],
  ] as const) {
    target.weir.signal('SIGUSR2');
    await target.weir.line(new RegExp(`^the clock jumped ${direction}$`));
    await call(when);
  }
}

/** What happens to the process itself: its outputs, its signals, its clock. */
export const PROCESS = {
  'standard error is not read, at LOG_LEVEL=debug, during 20,000 malformed calls': {
    settings: { LOG_LEVEL: 'debug' },
    unread: 'stderr',
    run: calls(20_000, Buffer.from([0x0f])),
  },
  'standard output is not read, with the statistics on it, during 5,000 calls': {
    settings: { USE_PUSHSTATS: 'false', STATS_FLUSH_INTERVAL: '50ms' },
    unread: 'stdout',
    run: calls(5_000, requestMessage('no-such-domain', ['k=v'])),
  },
  '50 times SIGUSR1': { run: signals('SIGUSR1') },
  '50 times SIGUSR2 and SIGALRM': { run: signals('SIGUSR2', 'SIGALRM') },
  'the clock jumps ahead by 2 hours, and back': {
    settings: { NODE_OPTIONS: `--require=${join(__dirname, '../jumping-clock.cjs')}` },
    rules: {
      'clock.yaml': 'domain: clock\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n',
    },
    run: jumpingClock,
  },
} as const satisfies Record<string, Attack>;
