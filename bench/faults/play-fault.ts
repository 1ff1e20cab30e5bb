import { setTimeout as sleep } from 'node:timers/promises';
import type { FailurePolicy } from '../../src/rules/rule-config';
import { RuleFolder } from '../../test/support/data/rule-folder';
import { WeirProcess } from '../../test/support/processes/weir-process';
import { OK } from '../suite/load/connection';
import { Pool } from '../suite/load/pool';
import { Ticks } from '../suite/load/ticks';
import { DOMAIN } from '../suite/scenarios/loads';
import { protobufMessage, valueText, withDigits } from '../suite/scenarios/messages';
import { type Fault, FaultyStore, type StoreName, endsByItself, isKilled } from './stores';

/** Each value has a counter without a limit, and one with this limit. */
const LIMIT = 5;
const RULES = `domain: ${DOMAIN}
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 4000000000 } }
  - { key: limited, rate_limit: { unit: day, requests_per_unit: ${LIMIT} } }
`;
/** Milliseconds that a call may take: the deadline of the calls, and where there is none. */
const DEADLINE = { 'envoy, 50 ms': 50, envoy: Infinity } as const;
const CONNECTIONS = 4;
/** Milliseconds of a part of the course. */
export const PART = 100;
/** The code of a new process is compiled while it runs: 24,000 calls at the default rate. */
const [WARM_UP, SETTLE] = [6_000, 10_000];
/** Milliseconds between two looks at the health of an instance. */
const LOOK_INTERVAL = 50;
const DEGRADED = Buffer.from('x-ratelimit-degraded');

export interface FaultCase {
  readonly store: StoreName;
  readonly fault: Fault;
  readonly policy: FailurePolicy;
}

export interface FaultOptions {
  /** Calls per second. */
  readonly rate: number;
  /** Milliseconds before the fault, in it, and after it. */
  readonly times: readonly [before: number, during: number, after: number];
  readonly headers: keyof typeof DEADLINE;
}

/** What became of the calls that were sent in a part of the course. */
export interface Part {
  readonly counted: number;
  readonly byPolicy: number;
  /** Without an answer, or with one after the deadline. */
  readonly failed: number;
  /** In milliseconds; null without calls that have ended. */
  readonly p99: number | null;
}

/** Milliseconds until the health of an instance is no longer green, and until it is again; null: that never was. */
export interface ToldFault {
  readonly began: number | null;
  readonly ended: number | null;
}

export interface FaultResult extends FaultCase {
  readonly calls: number;
  readonly byPolicy: number;
  /** Before the fault, in its first second with those in flight when it began, and from then on. */
  readonly failed: readonly [before: number, first: number, later: number];
  /** Milliseconds: before the fault, and in it after its first second. */
  readonly p99: readonly [before: number | null, during: number | null];
  /** Milliseconds from the end of the fault to the first 100 ms in which the store has counted nine of ten calls. */
  readonly recovered: number;
  /** What the instance says that is called, and one that is not. */
  readonly told: readonly [called: ToldFault, idle: ToldFault];
  /** How many calls have passed above the limit of their value or, of an emptied store, twice the limit. */
  readonly overBound: number;
  /** Values of which the store has counted more than was sent. */
  readonly appliedTwice: number;
  /** By 100 ms, from the beginning on. */
  readonly parts: readonly Part[];
}

/** Plays calls at a steady rate while a store fails and comes back. */
export async function playFault(which: FaultCase, { rate, times, headers }: FaultOptions): Promise<FaultResult> {
  await using store = await FaultyStore.start(which.store);
  await using rules = await RuleFolder.with({ 'bench.yaml': RULES });
  const env = {
    ...rules.env,
    ...store.env,
    DISABLE_STATS: 'true',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    STORE_FAILURE_POLICY: which.policy,
  };
  await using weir = await WeirProcess.start({ env });
  await using idle = await WeirProcess.start({ env });
  // Each value is called some ten times.
  const values = Math.max(10, Math.round((rate * (WARM_UP + times[0] + times[1] + times[2])) / 10_000));
  const course = new Course(values, { rate, deadline: DEADLINE[headers] });
  const template = protobufMessage(['user', 'limited'].map((key) => ({ key, value: valueText(0) })));
  const pool = new Pool(
    {
      protocol: 'grpc',
      targets: [{ host: '127.0.0.1', port: weir.ports.grpc, headers }],
      connections: CONNECTIONS,
      messages: withDigits(template, (call) => call % values),
    },
    course,
  );
  await pool.open();
  using pace = new Ticks(1, () => course.callDue(pool));
  course.begin();
  pace.start();
  await sleep(WARM_UP);
  course.begin();
  const [before, during, after] = times;
  await sleep(before);
  const watches = [new HealthWatch(weir), new HealthWatch(idle)] as const;
  const began = performance.now();
  await store.begin(which.fault);
  await sleep(during);
  await store.end(which.fault);
  const ended = performance.now();
  await sleep(after);
  const back = endsByItself(which.fault) ? began + PART : ended;
  const over = endsByItself(which.fault) ? began : ended;
  const told = [await watches[0].result(began, over), await watches[1].result(began, over)] as const;
  pace.stop();
  for (const until = performance.now() + SETTLE; pool.outstanding > 0 && performance.now() < until;) await sleep(10);
  pool.close();
  const day = Math.floor(Date.now() / 86_400_000) * 86_400;
  const keys = Array.from({ length: values }, (_, value) => `${DOMAIN}_user_${valueText(value)}_${day}`);
  const stored = await store.counts(keys);
  const bound = isKilled(which.fault) ? 2 * LIMIT : LIMIT;
  return {
    ...which,
    ...course.result({ began, ended, back }),
    told,
    overBound: course.passed.reduce((sum, passed) => sum + Math.max(0, passed - bound), 0),
    appliedTwice: stored.filter((count, value) => count > course.sent[value]!).length,
  };
}

/** What the health of an instance says of its store. */
class HealthWatch {
  readonly #looks: { readonly at: number; readonly isGreen: boolean }[] = [];
  readonly #looking: Promise<void>;
  #isOver = false;

  constructor(weir: WeirProcess) {
    this.#looking = this.#look(weir);
  }

  async result(began: number, ended: number): Promise<ToldFault> {
    this.#isOver = true;
    await this.#looking;
    const first = this.#looks.find(({ at, isGreen }) => at > began && !isGreen);
    const last = this.#looks.findLast(({ isGreen }) => !isGreen);
    const next = this.#looks.find(({ at }) => last !== undefined && at > last.at);
    return { began: first ? first.at - began : null, ended: next ? Math.max(0, next.at - ended) : null };
  }

  async #look(weir: WeirProcess): Promise<void> {
    while (!this.#isOver) {
      const { store } = JSON.parse(await weir.debug('/api/health')) as { readonly store: { readonly state: string } };
      this.#looks.push({ at: performance.now(), isGreen: store.state === 'green' });
      await sleep(LOOK_INTERVAL);
    }
  }
}

interface Sent {
  readonly at: number;
  latency: number;
  outcome: 'counted' | 'byPolicy' | 'failed';
}

/** What becomes of the calls. */
class Course {
  /** By value. */
  readonly sent: number[];
  readonly passed: number[];
  readonly #rate: number;
  readonly #deadline: number;
  /** By the number of the call. */
  readonly #calls: Sent[] = [];
  #begun = NaN;
  /** The number of the first call of the course. */
  #first = 0;

  constructor(values: number, { rate, deadline }: { readonly rate: number; readonly deadline: number }) {
    this.#rate = rate;
    this.#deadline = deadline;
    this.sent = Array.from({ length: values }, () => 0);
    this.passed = [...this.sent];
  }

  /** Begins the course, or begins it again: what was sent before is no part of it. */
  begin(): void {
    this.#begun = performance.now();
    this.#first = this.#calls.length;
  }

  callDue(pool: Pool): void {
    const due = this.#first + Math.floor(((performance.now() - this.#begun) / 1_000) * this.#rate);
    while (this.#calls.length < due) this.#call(pool);
    pool.flush();
  }

  readonly onResponse = (call: number, bytes: Buffer, start: number, end: number): void => {
    if (bytes.subarray(start, end).includes(DEGRADED)) this.#calls[call]!.outcome = 'byPolicy';
  };

  // oxlint-disable-next-line max-params -- a CallListener of the load generator
  answered(_connection: unknown, call: number, at: number, code: number, now: number): void {
    if (code === OK) this.passed[call % this.passed.length]! += 1;
    const sent = this.#calls[call]!;
    sent.latency = now - at;
    if (sent.latency > this.#deadline) sent.outcome = 'failed';
    else if (sent.outcome === 'failed') sent.outcome = 'counted';
  }

  /** A call counts as failed until it is answered. */
  failed(call: number, at: number): void {
    this.#calls[call]!.latency = performance.now() - at;
  }

  /** @param back from when on the store may count again */
  result({ began, ended, back }: { readonly began: number; readonly ended: number; readonly back: number }) {
    const calls = this.#calls.slice(this.#first);
    function between(from: number, to: number): readonly Sent[] {
      return calls.filter(({ at }) => from <= at && at < to);
    }
    // A call in flight when the fault began belongs to its first second.
    const before = between(0, began).filter(({ at, latency }) => !(at + latency > began));
    const first = countOf(between(0, began + 1_000), 'failed') - countOf(before, 'failed');
    let recovered = back;
    const last = calls.at(-1)?.at ?? ended;
    while (recovered < last && !isCounted(between(recovered, recovered + PART))) recovered += PART / 10;
    return {
      calls: calls.length,
      byPolicy: countOf(calls, 'byPolicy'),
      failed: [countOf(before, 'failed'), first, countOf(between(began + 1_000, Infinity), 'failed')] as const,
      p99: [p99(before), p99(between(began + 1_000, ended))] as const,
      recovered: recovered - Math.min(back, ended),
      parts: Array.from({ length: Math.ceil((last - this.#begun) / PART) }, (_, index) => {
        const part = between(this.#begun + index * PART, this.#begun + (index + 1) * PART);
        const [counted, byPolicy] = [countOf(part, 'counted'), countOf(part, 'byPolicy')];
        return { counted, byPolicy, failed: countOf(part, 'failed'), p99: p99(part) };
      }),
    };
  }

  #call(pool: Pool): void {
    const call = this.#calls.length;
    this.sent[call % this.sent.length]! += 1;
    const at = performance.now();
    this.#calls.push({ at, latency: NaN, outcome: 'failed' });
    pool.call(call, at);
  }
}

function isCounted(calls: readonly Sent[]): boolean {
  return countOf(calls, 'counted') >= 0.9 * calls.length;
}

function countOf(calls: readonly Sent[], outcome: Sent['outcome']): number {
  return calls.filter((call) => call.outcome === outcome).length;
}

/** The time that 99 % of the calls which have ended do not exceed. */
function p99(calls: readonly Sent[]): number | null {
  const latencies = calls.flatMap(({ latency }) => (latency >= 0 ? [latency] : []));
  latencies.sort((one, other) => one - other);
  return latencies[Math.ceil(latencies.length * 0.99) - 1] ?? null;
}
