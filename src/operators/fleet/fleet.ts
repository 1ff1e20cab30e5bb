import { setTimeout as pause } from 'node:timers/promises';
import { counted } from '../../text/counted';
import { excerpt } from '../../text/excerpt';
import { messageOf } from '../../text/thrown';
import { ownText } from '../../text/table-key';
import { inTime } from '../in-time';
import type { Changes } from './changes';
import type { HistoryRecorder } from '../history/history';
import type {
  Change,
  Fleet,
  FleetDifference,
  HealthPart,
  History,
  InstanceReport,
  ListedHealth,
  PeerReport,
} from '../live-answers';
import { type Compared, type Differences, differencesOf, mergeReports } from './merge-reports';
import { type FleetWatch, FleetWatched, type WatchCounts, type WatchedCaller } from './watches';

/** Peers that are asked at most, */
export const MOST_PEERS = 100;
/**
 * and how many at the same time: those that answered last, or are new, and those that did not, which delay no other.
 */
const AT_ONCE = 3;
const FAILING_AT_ONCE = 1;
/** Milliseconds between two of those: an answer that is wrong may take longer to read than others. */
const REST = 300;
/** Milliseconds between the first ones: else, answers of the same size would arrive at the same time in each turn. */
const APART = 50;
/** Milliseconds from the end of a round, in which each is asked once, to the beginning of the next one. */
const PAUSE = 3_000;
/** Milliseconds that an answer about all instances waits for a round. */
const WAIT_MS = 1_500;
/** Milliseconds that an instance which ends waits for the others to take what it knows. */
export const LEAVE_WAIT_MS = 3_000;
/** Most characters that are kept of a text of a peer. */
const LONGEST = 200;
/** Differences that the state of the instances names. */
const NAMED = 3;

/** Samples of a history that a peer is asked for at once: 20 minutes. */
export const SAMPLES_ASKED = 120;
/** Milliseconds after which a peer has a new sample, and those between two askings of one that ends. */
const [NEW_SAMPLE, ENDING] = [10_000, 300];

/** Milliseconds without a viewer of a caller after which the others are not asked for it any more. */
const UNSEEN = 10_000;

/** Another instance, as far as the settings and DNS name it. */
export interface Peer {
  /** Different from those of all other peers. */
  readonly address: string;
  /**
   * Rejects in about a second with an error that says in a few words why there is no answer, or what is wrong with it.
   */
  readonly ask: () => Promise<PeerReport>;
  /** The oldest samples that it has of an instance after a time, in Unix seconds, and all marks. */
  readonly history: (id: string, since: number) => Promise<History>;
  /** The newest changes that it knows of. */
  readonly changes: () => Promise<readonly Change[]>;
  /** Calls of the last seconds of a caller, which it watches from now on. */
  readonly watch: (caller: WatchedCaller) => Promise<WatchCounts>;
  /** Tells it that the instance of this id ends, and waits until it has taken what that one knows. */
  readonly leaves: (id: string) => Promise<void>;
}

/** What is kept of other instances, so that it outlives them. */
export interface Kept {
  readonly history: Pick<HistoryRecorder, 'take' | 'lastOf'>;
  readonly changes: Pick<Changes, 'take'>;
}

/** Finds the other instances. This one may be among them. Never rejects. */
export type FindPeers = () => Promise<readonly Peer[]>;

/** What is known of a peer. */
class KnownPeer {
  answer: PeerReport | undefined;
  answeredAt: string | null = null;
  problem: string | null = null;
  /** Why what it has recorded could not be taken. */
  note: string | null = null;
  isAsked = false;
  #takenAt = -Infinity;
  #last: Promise<void> | undefined;
  #changes = 0;

  constructor(public peer: Peer) {}

  get report(): InstanceReport | undefined {
    return this.answer?.report;
  }

  /** Names may be the same: three machines are called vm. */
  get label(): string {
    return this.report === undefined ? this.peer.address : `${this.report.name} (${this.peer.address})`;
  }

  get isAnswering(): boolean {
    return this.isAsked && this.problem === null;
  }

  async ask(): Promise<void> {
    try {
      this.answer = await this.peer.ask();
      this.answeredAt = new Date().toISOString();
      this.problem = null;
    } catch (error) {
      this.problem = ownText(excerpt(messageOf(error), LONGEST));
    }
    this.isAsked = true;
  }

  /**
   * Takes what it has recorded, and what it has of instances that do not answer.
   *
   * @param after milliseconds since the last time
   */
  async takeInto({ history, changes }: Kept, isAnswering: (id: string) => boolean, after: number): Promise<void> {
    const { report } = this;
    if (report === undefined || performance.now() - this.#takenAt < after) return;
    this.#takenAt = performance.now();
    try {
      const known = await this.#takeHistory(history, { id: report.id, name: this.label });
      for (const other of known.filter(({ id, until }) => !isAnswering(id) && until > history.lastOf(id))) {
        await this.#takeHistory(history, other);
      }
      if (report.changes !== this.#changes) {
        const own = `${report.id}/`;
        const taken = await this.peer.changes();
        changes.take(taken.map((each) => (each.id.startsWith(own) ? { ...each, instance: this.label } : each)));
        this.#changes = report.changes;
      }
      this.note = null;
    } catch (error) {
      this.note = ownText(excerpt(`its history is not complete: ${messageOf(error)}`, LONGEST));
    }
  }

  /** Takes all that it has recorded, at once unless that was done just now: it ends. */
  takeLast(kept: Kept, isAnswering: (id: string) => boolean): Promise<void> {
    this.#last ??= pause(Math.max(0, this.#takenAt + ENDING - performance.now()))
      .then(() => this.ask())
      .then(() => this.takeInto(kept, isAnswering, 0))
      .finally(() => (this.#last = undefined));
    return this.#last;
  }

  async #takeHistory(history: Kept['history'], of: Pick<InstanceReport, 'id' | 'name'>): Promise<History['instances']> {
    for (let last = -1; ;) {
      const since = history.lastOf(of.id);
      const part = await this.peer.history(of.id, since);
      history.take(of, part);
      // A peer may send ever the same.
      if (part.times.length < SAMPLES_ASKED || since === last) return part.instances;
      last = since;
    }
  }
}

export interface FleetOptions {
  readonly find: FindPeers;
  /** The id of this instance. */
  readonly id: string;
  /** The settings that may differ. */
  readonly expected: ReadonlySet<string>;
  readonly kept: Kept;
}

/** All instances, seen from this one. The others are asked only while there is interest, and none is waited for. */
export class FleetView {
  readonly #options: FleetOptions;
  /** By address; undefined before they have been found for the first time. */
  #peers: ReadonlyMap<string, KnownPeer> | undefined;
  #omitted = 0;
  /** In what those differ, and should not, that answered in the last round, or at the last look. */
  #differing: readonly FleetDifference[] = [];
  /** The callers that viewers look at. */
  #watched: FleetWatched[] = [];
  #round: Promise<void> = Promise.resolve();
  #isRetrying = false;
  /** When the next round may begin. */
  #due = -Infinity;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** All instances, as far as they are known by now. @param own the report of this one */
  async read(own: InstanceReport): Promise<Fleet> {
    await this.look(own);
    const others = this.#others;
    const answering = this.#answering;
    const { differs, ...differences } = await this.#compare(own, answering);
    const at = new Date().toISOString();
    return {
      at,
      instances: [
        { ...shown(own), address: null, answeredAt: at, problem: null, note: null, differs: differs[0]! },
        ...others.map((known) => {
          const { report, answer, answeredAt, problem, peer } = known;
          const note = known.note ?? answer?.note ?? null;
          const of = differs[1 + answering.indexOf(known)] ?? [];
          return { ...shown(report), address: peer.address, answeredAt, problem, note, differs: of };
        }),
      ],
      pending: others.filter(({ isAsked }) => !isAsked).length,
      omitted: this.#omitted,
      ...differences,
      ...(await mergeReports([own, ...reportsOf(answering)])),
    };
  }

  /** Asks the others, and waits for them a little. */
  async look(own: Compared): Promise<void> {
    this.#look(own);
    await inTime(WAIT_MS, this.#round);
  }

  /** An instance says that it ends: takes what it knows. */
  async taking(id: string, own: Compared): Promise<void> {
    if (id === this.#options.id) return;
    if (this.#peerOf(id) === undefined) await this.look(own);
    await this.#peerOf(id)?.takeLast(this.#options.kept, this.#isAnswering);
  }

  /** Tells the others that this instance ends, and waits a little until they have taken what it knows. */
  async leave(): Promise<void> {
    const peers =
      this.#peers === undefined ? await this.#options.find() : Array.from(this.#peers.values(), ({ peer }) => peer);
    const left = peers.slice(0, MOST_PEERS).map((peer) => peer.leaves(this.#options.id).catch(() => undefined));
    await inTime(
      LEAVE_WAIT_MS,
      Promise.all(left).then(() => undefined),
    );
  }

  /**
   * Adds the calls of a caller that the others have counted.
   *
   * @param own the calls that this one has
   */
  async watch(caller: WatchedCaller, own: WatchCounts, compared: Compared): Promise<FleetWatch> {
    const now = performance.now();
    this.#watched = this.#watched.filter(({ askedAt }) => now - askedAt < UNSEEN);
    let watched = this.#watched.find((each) => each.isOf(caller));
    if (watched === undefined) this.#watched.push((watched = new FleetWatched(caller)));
    watched.askedAt = now;
    await this.look(compared);
    const missing = this.#others.filter(({ peer }) => !watched.has(peer.address));
    return { ...watched.with(own), missing: missing.map(({ label }) => label) };
  }

  /** How the others are, as far as that is known by now: begins to ask them, but does not wait. */
  part(own: Compared): Omit<ListedHealth['instances'], 'since'> {
    this.#look(own);
    const others = this.#others;
    const answering = this.#answering;
    const part =
      this.#peers === undefined ? asking('looking for other instances') : partOf(others, answering, this.#differing);
    return { ...part, known: 1 + others.length, seen: 1 + answering.length };
  }

  /** Compares instances, this one first. */
  async #compare(own: Compared, answering: readonly KnownPeer[]): Promise<Differences> {
    const labels = [own.name, ...answering.map(({ label }) => label)];
    const found = await differencesOf([own, ...reportsOf(answering)], labels, this.#options.expected);
    this.#differing = found.differences.filter(({ isExpected }) => !isExpected);
    return found;
  }

  /** The peers that are other instances, each once. */
  get #others(): readonly KnownPeer[] {
    const ids = new Set([this.#options.id]);
    return [...(this.#peers?.values() ?? [])].filter(({ report }) => {
      if (report === undefined) return true;
      if (ids.has(report.id)) return false;
      ids.add(report.id);
      return true;
    });
  }

  get #answering(): readonly KnownPeer[] {
    return this.#others.filter(({ isAnswering }) => isAnswering);
  }

  #peerOf(id: string): KnownPeer | undefined {
    return this.#others.find(({ report }) => report?.id === id);
  }

  readonly #isAnswering = (id: string): boolean => id === this.#options.id || this.#peerOf(id)?.isAnswering === true;

  #look(own: Compared): void {
    if (performance.now() < this.#due) return;
    this.#due = Infinity;
    this.#round = this.#askAll(own).finally(() => (this.#due = performance.now() + PAUSE));
  }

  async #askAll(own: Compared): Promise<void> {
    const found = await this.#options.find();
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
      void this.#askInTurn(failing, FAILING_AT_ONCE, REST).finally(() => (this.#isRetrying = false));
    }
    await this.#askInTurn(
      peers.filter((known) => !failing.includes(known)),
      AT_ONCE,
    );
    await this.#compare(own, this.#answering);
  }

  /** @param rest milliseconds between two of them */
  async #askInTurn(peers: readonly KnownPeer[], atOnce: number, rest?: number): Promise<void> {
    const left = [...peers];
    const askNext = async (_: unknown, index: number): Promise<void> => {
      if (index > 0) await pause(index * APART);
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        await next.ask();
        const isOther = next.isAnswering && this.#others.includes(next);
        if (isOther) {
          for (const watched of this.#watched) await watched.takeFrom(next.peer.address, next.peer.watch);
          await next.takeInto(this.#options.kept, this.#isAnswering, NEW_SAMPLE);
        }
        if (rest !== undefined && left.length > 0) await pause(rest);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, askNext));
  }
}

function reportsOf(peers: readonly KnownPeer[]): readonly InstanceReport[] {
  return peers.flatMap(({ report }) => report ?? []);
}

function shown(report: InstanceReport | undefined) {
  return {
    id: report?.id ?? null,
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

function partOf(
  others: readonly KnownPeer[],
  answering: readonly KnownPeer[],
  differing: readonly FleetDifference[],
): HealthPart {
  const [away] = others.filter(({ problem }) => problem !== null);
  if (away !== undefined) {
    const count = counted(others.length - answering.length, 'instance');
    const text = `${count} of ${1 + others.length} without an answer: ${away.label}: ${away.problem}`;
    return { state: 'amber', text, todo: { text: 'find out whether it runs', link: 'docs/runbook.md#weirdown' } };
  }
  if (answering.length < others.length) {
    return asking(`asking ${counted(others.length, 'other instance')}`);
  }
  const ill = answering.find(({ report }) => ['red', 'amber'].includes(report!.health.state));
  if (ill !== undefined) {
    const text = `${ill.label} is ${ill.report!.health.state}`;
    return { state: 'amber', text, todo: { text: 'look at that instance', link: LINK } };
  }
  if (differing.length > 0) {
    const named = differing.slice(0, NAMED).map(({ aspect, name, values: [, odd] }) => {
      const [first, ...more] = odd!.instances;
      return `${name || aspect} of ${first}${more.length === 0 ? '' : ` and ${counted(more.length, 'other')}`}`;
    });
    const left = differing.length - named.length;
    const text = `instances differ: ${named.join(', ')}${left === 0 ? '' : `, and ${left} more`}`;
    return { state: 'amber', text, todo: { text: 'wait for the end of a rollout, or make them equal', link: LINK } };
  }
  const text = others.length === 0 ? 'this is the only instance' : `${1 + others.length} instances, which are alike`;
  return { state: 'green', text, todo: null };
}

function asking(text: string): HealthPart {
  return { state: 'unknown', text, todo: { text: 'the next answer says more', link: LINK } };
}
