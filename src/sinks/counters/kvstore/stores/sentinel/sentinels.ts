import { type Observable, firstValueFrom, switchMap } from 'rxjs';
import { messageOf } from '../../../../../text/thrown';
import { type Server, nameOf } from '../../../server-address';
import type { Credentials } from '../../connections/address';
import { type Connection, connect } from '../../connections/connection';
import { limitReplyTime } from '../../connections/reply-timer';
import type { TlsMaterial } from '../../../tls-material';
import { epochOf, masterOf, sentinelsOf } from './replies';

/**
 * Time limit for connecting to a sentinel, and again for its reply, in milliseconds: one that hangs must not delay the query
 * of the next.
 */
const QUERY_TIMEOUT = 1000;

export interface SentinelsOptions {
  readonly masterName: string;
  readonly sentinels: readonly Server[];
  /** For a new connection. */
  readonly credentials: () => Credentials | undefined;
  readonly tls: TlsMaterial | undefined;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
}

/** What a sentinel has replied. */
interface Answer {
  readonly sentinel: Server;
  readonly master: Server;
  /**
   * The version of the sentinel's configuration, which every failover raises. NaN when the sentinel does not report it, which
   * is neither older nor newer than any.
   */
  readonly epoch: number;
  /** The other sentinels that it can reach. */
  readonly others: readonly Server[];
}

/**
 * Finds the master: queries the sentinels of the settings, and those that these know of.
 *
 * A sentinel that is cut off from the others, or has just been restarted, may name a former master for any length of time, and
 * that server may even answer as a master. So an answer with an older configuration than the last one is used only if there is no
 * other, or if the master of the newer one could never be used: its version may belong to a deployment that is gone. And a sentinel
 * whose master cannot be used is queried after the others, because versions may be unknown.
 */
export class Sentinels {
  readonly #options: SentinelsOptions;
  /** In the order of queries: the sentinel whose answer was used last comes first. */
  #order: readonly Server[];
  /** The answer that was used last. */
  #last: Answer | undefined;
  /** Whether its master was rejected. */
  #isLastRejected = false;
  /** Whether its master, or the one of an answer before with the same configuration, has been connected to. */
  #isLastProven = false;
  /** The names of those that did not answer their last query: each costs the time limit. */
  readonly #silent = new Set<string>();
  readonly #timeout: number;
  #query: Promise<Server> | undefined;

  constructor(options: SentinelsOptions) {
    this.#options = options;
    this.#order = options.sentinels;
    this.#timeout = options.timeout > 0 ? Math.min(options.timeout, QUERY_TIMEOUT) : QUERY_TIMEOUT;
  }

  get masterName(): string {
    return this.#options.masterName;
  }

  /** Resolves with the current master; concurrent calls share one query. Rejects when no sentinel knows it. */
  master(): Promise<Server> {
    if (this.#query !== undefined) return this.#query;
    const query = this.#queryInOrder().finally(() => {
      if (this.#query === query) this.#query = undefined;
    });
    this.#query = query;
    return query;
  }

  /**
   * Resolves with the current master after messages of this sentinel may have been missed: its own answer if it has a newer
   * configuration than the last one, else that of {@link master}.
   */
  async masterAfterGap(sentinel: Server): Promise<Server> {
    const answer = await this.#queryOne(sentinel).catch(() => undefined);
    return answer !== undefined && answer.epoch > this.#lastEpoch ? this.#use(answer) : this.master();
  }

  /** Queries this sentinel first from now on: it has announced another master, of which the others may not know yet. */
  putFirst(sentinel: Server): void {
    this.#order = distinct([sentinel, ...this.#order]);
    // A query in flight may wait for a sentinel that does not know it.
    this.#query = undefined;
  }

  /** Reports that a server, by its name, has been connected to as the master. */
  prove(server: string): void {
    if (this.#last === undefined || nameOf(this.#last.master) !== server) return;
    this.#isLastProven = true;
    this.#isLastRejected = false;
  }

  /**
   * Reports that a server cannot be used as the master: the sentinel that named it is queried last from now on.
   *
   * @param server its name
   */
  reject(server: string): void {
    if (this.#last === undefined || this.#isLastRejected || nameOf(this.#last.master) !== server) return;
    const { sentinel } = this.#last;
    this.#order = [...this.#order.filter((each) => nameOf(each) !== nameOf(sentinel)), sentinel];
    this.#isLastRejected = true;
  }

  connect(server: Server): Observable<Connection> {
    const { credentials, tls } = this.#options;
    return connect({ server, credentials: credentials(), db: 0, tls, mustBeMaster: false, timeout: this.#timeout });
  }

  async #queryInOrder(): Promise<Server> {
    const failures: string[] = [];
    const order = this.#order;
    let newestOlder: Answer | undefined;
    let rejected: Answer | undefined;
    for (const sentinel of order) {
      const answer = await this.#queryOne(sentinel).catch((error: unknown) => {
        failures.push(`${nameOf(sentinel)}: ${messageOf(error)}`);
      });
      // In the meantime, a sentinel has announced a master or named a newer one, or the master was rejected.
      if (this.#order !== order) return this.#queryInOrder();
      if (answer === undefined) continue;
      if (answer.epoch < this.#lastEpoch) {
        if (newestOlder === undefined || answer.epoch > newestOlder.epoch) newestOlder = answer;
      } else if (this.#isRejected(answer)) rejected = answer;
      else return this.#use(answer);
    }
    // An older one: the sentinels were set up again, or those with the newer configuration do not answer, or their master was never there.
    const fallback = this.#isLastProven ? (rejected ?? newestOlder) : (newestOlder ?? rejected);
    if (fallback !== undefined) return this.#use(fallback);
    throw new Error(`no sentinel returned the address of the master ${this.masterName} (${failures.join('; ')})`);
  }

  async #queryOne(sentinel: Server): Promise<Answer> {
    const replies$ = this.connect(sentinel).pipe(
      switchMap((connection) => askFor(this.masterName, connection)),
      limitReplyTime(2 * this.#timeout),
    );
    const [details, address, others] = await firstValueFrom(replies$).catch((error: unknown) => {
      this.#silent.add(nameOf(sentinel));
      throw error;
    });
    this.#silent.delete(nameOf(sentinel));
    const master = masterOf(address);
    if (master === undefined) throw new Error('does not know the master');
    return { sentinel, master, epoch: epochOf(details), others: sentinelsOf(others) };
  }

  #use(answer: Answer): Server {
    const { sentinel, master, epoch } = answer;
    this.#isLastProven &&= epoch === this.#lastEpoch;
    this.#last = answer;
    this.#isLastRejected = false;
    const known = distinct([...this.#options.sentinels, ...answer.others]);
    const names = new Set(known.map(nameOf));
    for (const name of this.#silent) if (!names.has(name)) this.#silent.delete(name);
    // The others keep their order, in which those come last whose master was rejected; the silent ones come after them.
    const others = [...this.#order.filter((each) => names.has(nameOf(each))), ...known];
    const silent = others.filter((each) => this.#silent.has(nameOf(each)));
    this.#order = distinct([sentinel, ...others.filter((each) => !silent.includes(each)), ...silent]);
    return master;
  }

  /** Whether a sentinel names the master again that was rejected. */
  #isRejected({ sentinel, master }: Answer): boolean {
    if (!this.#isLastRejected || this.#last === undefined) return false;
    return nameOf(this.#last.sentinel) === nameOf(sentinel) && nameOf(this.#last.master) === nameOf(master);
  }

  get #lastEpoch(): number {
    return this.#last?.epoch ?? -1;
  }
}

/** The replies of a sentinel about a master: its details, its address, and the other sentinels. */
function askFor(masterName: string, connection: Connection): Promise<readonly [unknown, unknown, unknown]> {
  function ask(command: string): Promise<unknown> {
    return connection.send('SENTINEL', command, masterName);
  }
  return Promise.all([
    // Before the address: if a failover ends between the two replies, the old address must not come with the new version.
    // A user without permission for this command or the last one can still get the address.
    ask('master').catch(() => []),
    ask('get-master-addr-by-name'),
    ask('sentinels').catch(() => []),
  ]);
}

function distinct(servers: readonly Server[]): readonly Server[] {
  return [...new Map(servers.map((server) => [nameOf(server), server])).values()];
}
