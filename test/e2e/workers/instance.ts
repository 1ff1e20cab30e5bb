import { RateLimitResponse_Code } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { PinnedClient } from '../../support/clients/pinned-client';
import type { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, ownerOf, workersOf } from '../../support/processes/worker-processes';

export const TOKEN = 'a-token-of-operators';
export const { OK, OVER_LIMIT } = RateLimitResponse_Code;

/** Limits of rules with a version begin here. */
const BASE = 1_000_000_000;

/** A rule file whose version callers see in the limit of `user`, and further lines of YAML below the descriptors. */
export function ruleFile(version: number, more = ''): string {
  const limit = `{ unit: year, requests_per_unit: ${BASE + version} }`;
  return `domain: shop\ndescriptors:\n  - { key: user, rate_limit: ${limit} }\n${more}`;
}

export function limitOf(version: number): number {
  return BASE + version;
}

/** The version of the rules by which a worker decides. */
export async function versionOf(client: PinnedClient): Promise<number> {
  const { statuses } = await client.shouldRateLimit('shop', ['user=version']);
  return (statuses[0]?.currentLimit?.requestsPerUnit ?? NaN) - BASE;
}

/** Connections that are closed at the end of a test: each stays with the worker that has it. */
export class Clients implements Disposable {
  readonly all: PinnedClient[] = [];
  readonly #weir: WeirProcess;

  constructor(weir: WeirProcess) {
    this.#weir = weir;
  }

  static async open(weir: WeirProcess, count: number): Promise<Clients> {
    const clients = new Clients(weir);
    for (let index = 0; index < count; index += 1) await clients.add();
    return clients;
  }

  async add(): Promise<PinnedClient> {
    const client = await PinnedClient.connect(this.#weir.grpcAddress);
    this.all.push(client);
    return client;
  }

  /** Opens connections until a process has one. */
  async addUntilServedBy(pid: number): Promise<void> {
    await this.#weir.until('a connection to the worker', async () => {
      await this.add();
      return connectionsTo(this.#weir.ports.grpc, pid) > 0;
    });
  }

  /** The process that serves each connection. */
  owners(): Promise<readonly (number | undefined)[]> {
    return this.#weir.until('all connections to have a worker', () => {
      const pids = this.all.map(({ localPort }) => ownerOf(this.#weir, localPort));
      return pids.every((pid) => pid !== undefined) && pids;
    });
  }

  versions(): Promise<readonly number[]> {
    return Promise.all(this.all.map(versionOf));
  }

  /** The codes of a call on each connection, one after the other. */
  async codes(descriptor: string): Promise<readonly number[]> {
    const codes: number[] = [];
    for (const client of this.all) codes.push((await client.shouldRateLimit('shop', [descriptor])).overallCode);
    return codes;
  }

  [Symbol.dispose](): void {
    for (const client of this.all) client[Symbol.dispose]();
  }
}

/** Waits until the workers have these numbers of connections, the largest first. */
export async function expectSpread(
  weir: WeirProcess,
  expected: readonly number[],
  count = (pid: number) => connectionsTo(weir.ports.grpc, pid),
): Promise<void> {
  await weir.until(`the workers to have ${expected.join(' and ')} connections`, () => {
    const seen = workersOf(weir).map(({ pid }) => count(pid));
    return seen.toSorted((one, other) => other - one).join() === expected.join();
  });
}

/** Waits until the primary, which dispatches connections, counts these of each worker, in any order. */
export async function untilPrimaryCounts(weir: WeirProcess, expected: readonly number[]): Promise<void> {
  await weir.until(`the primary to count ${expected.join(' and ')} connections`, async () => {
    const counts = [...(await weir.debug('/workers')).matchAll(/connections=(\d+)/g)].map(([, count]) => Number(count));
    return counts.toSorted((one, other) => other - one).join() === expected.join();
  });
}

/** Kills a worker, and waits for the one that replaces it. */
export async function replace(weir: WeirProcess, pid: number, signal?: NodeJS.Signals): Promise<number> {
  const before = workersOf(weir);
  if (signal !== undefined) process.kill(pid, signal);
  const replacement = await weir.until('another worker', () =>
    workersOf(weir).find((worker) => !before.some((other) => other.pid === worker.pid)),
  );
  return replacement.pid;
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export function linesWith(weir: WeirProcess, text: string): number {
  return weir.output.split('\n').filter((line) => line.includes(text)).length;
}

/** The answer of the operators' API to a request, with this status. */
export async function api(
  weir: WeirProcess,
  request: string,
  { body, status = 200 }: { readonly body?: unknown; readonly status?: number } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const [method, path] = request.split(' ') as [string, string];
  const response = await fetch(`http://127.0.0.1:${weir.ports.debug}${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', connection: 'close' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  expect([request, response.status, answer]).toEqual([request, status, answer]);
  return answer;
}

/**
 * What operators see and change in an instance, whose workers have a local cache, with six connections: the rule
 * `caller` has 3 requests per year.
 */
export async function expectOperatorsSeeAllWorkers(weir: WeirProcess, clients: Clients): Promise<void> {
  const [blocked, counter] = [Array<number>(6).fill(OVER_LIMIT), '/api/counters?domain=shop&descriptor=caller=blocked'];
  const firstThree = [OK, OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT];

  for (const client of clients.all.slice(0, 2)) await client.shouldRateLimit('shop', ['caller=explained']);
  const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'caller', value: 'explained' }] }] };
  for (let time = 0; time < 2; time += 1) {
    const { descriptors } = await api(weir, 'POST /api/explanations', { body });
    expect(descriptors).toMatchObject([{ outcome: 'limit', counter: { count: 2, countAfter: 3 } }]);
  }
  const long = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'x'.repeat(1_048_400) }] }] };
  const tooLong = await api(weir, 'POST /api/explanations', { body: long, status: 413 });
  expect(tooLong).toMatchObject({ code: 'too_much_work' });

  expect([await clients.codes('caller=blocked'), await clients.codes('caller=blocked')]).toEqual([firstThree, blocked]);
  expect(await api(weir, `GET ${counter}`)).toMatchObject({ isInLocalCache: true });
  await api(weir, `DELETE ${counter}`);
  expect(await api(weir, `GET ${counter}`)).toMatchObject({ count: 0, isInLocalCache: false });
  expect(await clients.codes('caller=blocked')).toEqual(firstThree);

  const change = { domain: 'shop', descriptor: 'caller=set', count: 2 };
  expect(await api(weir, 'PUT /api/counters', { body: change })).toMatchObject({ countBefore: 0, count: 2 });
  expect(await clients.codes('caller=set')).toEqual([OK, ...blocked.slice(1)]);

  const { offenders } = await api(weir, 'GET /api/offenders?domain=shop');
  const found = (offenders as { descriptor: string; limited: number }[]).map(({ descriptor, limited }) => [
    descriptor,
    limited,
  ]);
  // 3 and 6 calls before the counter was cleared, 3 afterwards; 5 calls after the other was set.
  expect(Object.fromEntries(found)).toMatchObject({ 'caller=blocked': 12, 'caller=set': 5 });
  // A worker whose report is late is not waited for.
  const totals = await weir.until('the calls of all workers', async () => {
    const { domains } = await api(weir, 'GET /api/rules/shop');
    const [{ descriptors }] = domains as [
      { descriptors: { key: string; totals: { calls: number; hits: number; over: number } }[] },
    ];
    const rule = descriptors.find(({ key }) => key === 'caller');
    return rule?.totals.hits === 26 && rule.totals;
  });
  expect(totals).toMatchObject({ calls: 26, hits: 26, over: 17 });
}
