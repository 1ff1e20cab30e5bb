import { counted } from '../text/counted';
import { excerpt } from '../text/excerpt';
import { messageOf } from '../text/thrown';
import { inTime } from './decisions';
import type { Fleet, FleetDifference, FleetInstance, HealthPart, InstanceReport, ListedHealth } from './live-answers';
import { type Compared, differencesOf, mergeReports } from './merge-reports';

/** Peers that are asked at most, */
const MOST_PEERS = 100;
/**
 * and how many at the same time: those that answered last, or are new, and those that did not, which delay no other.
 */
const AT_ONCE = 3;
const FAILING_AT_ONCE = 1;
/** Milliseconds from the end of a round, in which each is asked once, to the beginning of the next one. */
const PAUSE = 3_000;
/** Milliseconds that an answer about all instances waits for a round. */
const PATIENCE = 1_500;
/** Of what a peer says, in characters. */
const LONGEST = 200;

/** Another instance, as far as the settings and DNS name it. */
export interface Peer {
  /** Different from those of all other peers. */
  readonly address: string;
  /** Rejects in about a second with an error that says in a few words why there is no answer. */
  readonly ask: () => Promise<unknown>;
}

/** Finds the other instances. This one may be among them. Never rejects. */
export type FindPeers = () => Promise<readonly Peer[]>;

/** What is known of a peer. */
class KnownPeer {
  report: InstanceReport | undefined;
  answeredAt: string | null = null;
  problem: string | null = null;
  isAsked = false;

  constructor(public peer: Peer) {}

  get isAnswering(): boolean {
    return this.isAsked && this.problem === null;
  }

  async ask(): Promise<void> {
    try {
      this.report = checkedReport(await this.peer.ask());
      this.answeredAt = new Date().toISOString();
      this.problem = null;
    } catch (error) {
      this.problem = excerpt(messageOf(error), LONGEST);
    }
    this.isAsked = true;
  }
}

/** All instances, seen from this one. The others are asked only while there is interest, and none is waited for. */
export class FleetView {
  readonly #find: FindPeers;
  readonly #id: string;
  /** By address; undefined before they have been found for the first time. */
  #peers: ReadonlyMap<string, KnownPeer> | undefined;
  #omitted = 0;
  #round: Promise<void> = Promise.resolve();
  #isRetrying = false;
  /** When the next round may begin. */
  #due = -Infinity;

  /** @param id that of this instance */
  constructor(find: FindPeers, id: string) {
    this.#find = find;
    this.#id = id;
  }

  /** All instances, as far as they are known by now. @param own the report of this one */
  async read(own: InstanceReport): Promise<Fleet> {
    this.#look();
    await inTime(PATIENCE, this.#round);
    const others = this.#others;
    const answering = others.filter(({ isAnswering }) => isAnswering);
    const { differences, labels } = compare(own, answering);
    function differs(peer: KnownPeer | undefined): FleetInstance['differs'] {
      const label = labels.get(peer);
      const aspects = differences.filter(({ values }) =>
        values.slice(1).some(({ instances }) => label !== undefined && instances.includes(label)),
      );
      return [...new Set(aspects.map(({ aspect }) => aspect))];
    }
    const at = new Date().toISOString();
    return {
      at,
      instances: [
        { ...shown(own), address: null, answeredAt: at, problem: null, differs: differs(undefined) },
        ...others.map((known) => {
          const { report, answeredAt, problem, peer } = known;
          return { ...shown(report), address: peer.address, answeredAt, problem, differs: differs(known) };
        }),
      ],
      pending: others.filter(({ isAsked }) => !isAsked).length,
      omitted: this.#omitted,
      differences,
      ...mergeReports([own, ...reportsOf(answering)]),
    };
  }

  /** How the others are, as far as that is known by now: begins to ask them, but does not wait. */
  part(own: Compared): ListedHealth['instances'] {
    this.#look();
    const others = this.#others;
    const answering = others.filter(({ isAnswering }) => isAnswering);
    const part = this.#peers === undefined ? asking('looking for other instances') : partOf(own, others, answering);
    return { ...part, known: 1 + others.length, seen: 1 + answering.length };
  }

  /** The peers that are other instances, each once. */
  get #others(): readonly KnownPeer[] {
    const ids = new Set([this.#id]);
    return [...(this.#peers?.values() ?? [])].filter(({ report }) => {
      if (report === undefined) return true;
      if (ids.has(report.id)) return false;
      ids.add(report.id);
      return true;
    });
  }

  #look(): void {
    if (performance.now() < this.#due) return;
    this.#due = Infinity;
    this.#round = this.#askAll().finally(() => (this.#due = performance.now() + PAUSE));
  }

  async #askAll(): Promise<void> {
    const found = await this.#find();
    this.#omitted = Math.max(0, found.length - MOST_PEERS);
    const peers = found.slice(0, MOST_PEERS).map((peer) => {
      const known = this.#peers?.get(peer.address) ?? new KnownPeer(peer);
      known.peer = peer;
      return known;
    });
    this.#peers = new Map(peers.map((known) => [known.peer.address, known]));
    const failing = peers.filter(({ problem }) => problem !== null);
    if (!this.#isRetrying) {
      this.#isRetrying = true;
      void askInTurn(failing, FAILING_AT_ONCE).finally(() => (this.#isRetrying = false));
    }
    await askInTurn(
      peers.filter((known) => !failing.includes(known)),
      AT_ONCE,
    );
  }
}

async function askInTurn(peers: readonly KnownPeer[], atOnce: number): Promise<void> {
  const left = [...peers];
  async function askNext(): Promise<void> {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await next.ask();
  }
  await Promise.all(Array.from({ length: atOnce }, askNext));
}

function reportsOf(peers: readonly KnownPeer[]): readonly InstanceReport[] {
  return peers.flatMap(({ report }) => report ?? []);
}

/**
 * What differs, and by which name each instance is in it; undefined stands for this one. Names of machines may be the
 * same.
 */
function compare(own: Compared, answering: readonly KnownPeer[]) {
  const labels = new Map<KnownPeer | undefined, string>([[undefined, own.name]]);
  const reports = new Map<string, Compared>([[own.name, own]]);
  for (const known of answering) {
    const { report, peer } = known;
    if (report === undefined) continue;
    const label = reports.has(report.name) ? `${report.name} (${peer.address})` : report.name;
    labels.set(known, label);
    reports.set(label, report);
  }
  const differences: readonly FleetDifference[] = differencesOf(reports);
  return { labels, differences };
}

function shown(report: InstanceReport | undefined) {
  return {
    name: report?.name ?? null,
    version: report?.version ?? null,
    startedAt: report?.startedAt ?? null,
    health: report?.health ?? null,
    loaded: report?.loaded ?? null,
    rates: report?.rates ?? null,
    latency: report?.latency ?? null,
  };
}

const LINK = 'docs/operators-api.md#the-fleet';

function partOf(own: Compared, others: readonly KnownPeer[], answering: readonly KnownPeer[]): HealthPart {
  const [away] = others.filter(({ problem }) => problem !== null);
  if (away !== undefined) {
    const count = counted(others.length - answering.length, 'instance');
    const text = `${count} of ${1 + others.length} without an answer: ${away.peer.address}: ${away.problem}`;
    return { state: 'amber', text, todo: { text: 'find out whether it runs', link: 'docs/runbook.md#weirdown' } };
  }
  if (answering.length < others.length) {
    return asking(`asking ${counted(others.length, 'other instance')}`);
  }
  const ill = reportsOf(answering).find(({ health: { state } }) => state === 'red' || state === 'amber');
  if (ill !== undefined) {
    const text = `${ill.name} is ${ill.health.state}`;
    return { state: 'amber', text, todo: { text: 'look at that instance', link: LINK } };
  }
  const aspects = [...new Set(compare(own, answering).differences.map(({ aspect }) => aspect))];
  if (aspects.length > 0) {
    const text = `instances differ in ${aspects.join(', ')}`;
    return { state: 'amber', text, todo: { text: 'wait for the end of a rollout, or make them equal', link: LINK } };
  }
  const text = others.length === 0 ? 'this is the only instance' : `${1 + others.length} instances, which are alike`;
  return { state: 'green', text, todo: null };
}

function asking(text: string): HealthPart {
  return { state: 'unknown', text, todo: { text: 'the next answer says more', link: LINK } };
}

/**
 * What an instance has answered, which may be of another version.
 *
 * @throws Error when what is read of it is something else
 */
function checkedReport(value: unknown): InstanceReport {
  const report = Object(value) as InstanceReport;
  const texts: readonly unknown[] = [
    report.id,
    report.name,
    report.version,
    report.startedAt,
    Object(report.health).state,
  ];
  const lists: readonly unknown[] = [
    Object(report.rules).hits,
    Object(report.rules).denials,
    Object(report.offenders).offenders,
  ];
  const numbers: readonly unknown[] = [
    ...Object.values(Object(report.rates) as object),
    ...Object.values(Object(report.latency) as object),
    Object(report.offenders).floor,
  ];
  const isRight =
    texts.every((text) => typeof text === 'string') &&
    lists.every((list) => Array.isArray(list)) &&
    numbers.every((number) => typeof number === 'number') &&
    Object.values(Object(report.settings) as object).every((text) => typeof text === 'string') &&
    (report.loaded === null || typeof Object(report.loaded).version === 'string');
  if (!isRight) throw new Error('its answer is not that of an instance of this version');
  return { ...report, name: excerpt(report.name, LONGEST), version: excerpt(report.version, LONGEST) };
}
