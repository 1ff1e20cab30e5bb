import {
  BehaviorSubject,
  EMPTY,
  type Observable,
  Subject,
  Subscription,
  catchError,
  concatMap,
  defer,
  filter,
  ignoreElements,
  interval,
  map,
  merge,
  retry,
  share,
  switchMap,
  take,
  tap,
  throttleTime,
  timer,
} from 'rxjs';
import type { ConditionLog } from '../../../log/condition-log';
import { type Server, nameOf } from '../server-address';
import { type Connection, firstAnswer } from './connection';
import { HEARTBEAT, RECONNECT } from './pool';
import { portIn } from './replies';
import { isReply } from './store-error';
import type { StoreServers } from './deployment';
import type { StoreClient } from './store-client';

/** How soon a subscription that a sentinel has rejected is tried again, in milliseconds. */
const RESUBSCRIBE = 5000;

/** Most sentinels that are queried because another one has named them. */
const MAX_NAMED = 32;
/** Least time between two announcements of a sentinel that are followed, in milliseconds. */
const FOLLOW_INTERVAL = 1000;

/** What a sentinel has replied: the master, and the other sentinels that it can reach. */
interface Answer {
  readonly master: Server;
  readonly others: readonly Server[];
}

/**
 * The current master: the one that a sentinel has announced last (`+switch-master`), or named when it was queried. They
 * are queried one after the other until one answers: at start, after a connection to the master could not be opened,
 * when it replies that it is a replica, and after each subscription, before which an announcement may have been missed.
 *
 * Without announcements, a master that was demoted while it was alive would be counted on until the sentinels make it a
 * replica, about ten seconds later, and everything counted there in the meantime would be lost.
 */
export class Sentinels {
  readonly #client: StoreClient;
  readonly #servers: Extract<StoreServers, { kind: 'sentinel' }>;
  /** Undefined: no sentinel was queried yet, or the master that was named last cannot be used. */
  readonly #master$ = new BehaviorSubject<Server | undefined>(undefined);
  /**
   * In the order of queries: first the one that has answered or announced a master last, last those that did not
   * answer.
   */
  #sentinels: readonly Server[];
  /** Queries the sentinels for the master; concurrent subscribers share one query. */
  readonly #queries$: Observable<void>;
  readonly #tooMany: ConditionLog;
  readonly #subscription = new Subscription();

  constructor(servers: Extract<StoreServers, { kind: 'sentinel' }>, client: StoreClient) {
    this.#client = client;
    this.#servers = servers;
    this.#sentinels = servers.sentinels;
    this.#queries$ = defer(() => this.#query()).pipe(share());
    this.#tooMany = client.conditionLog({
      begins: 'a sentinel names more sentinels than are used',
    });
    client.onReadonly = (server) => {
      this.#reject(server);
      this.#queryNow();
    };
    for (const sentinel of servers.sentinels) this.#subscription.add(this.#watch(sentinel).subscribe());
  }

  /**
   * Opens a connection to the master, which fails when another server becomes it.
   *
   * If it cannot be opened, another sentinel is queried next: the one that named this server may not know the new
   * master. While other connections to it are open, the failure of one says nothing about the master.
   */
  connect(hasOthers: () => boolean): Observable<Connection> {
    return defer(() => {
      const answered$ = this.#master$.value === undefined ? this.#queries$.pipe(ignoreElements()) : EMPTY;
      const master$ = this.#master$.pipe(filter((master) => master !== undefined));
      return merge(answered$, master$).pipe(
        take(1),
        switchMap((master) => {
          const connection$ = this.#client.connect(master, { mustBeMaster: true });
          const rejected$ = tap<Connection>({ error: () => hasOthers() || this.#reject(nameOf(master)) });
          return merge(connection$.pipe(rejected$), this.#endOf(master));
        }),
      );
    });
  }

  /**
   * Fails when another server is the master, which cuts the connections to this one, and ends attempts to connect to
   * it: a master that hangs would delay them until their timeout. Emits nothing.
   */
  #endOf(master: Server): Observable<never> {
    return this.#master$.pipe(
      filter((current) => current !== undefined && nameOf(current) !== nameOf(master)),
      map((current) => {
        throw new Error(`the master is now ${nameOf(current as Server)}`);
      }),
    );
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  /** The master, by its name, cannot be used: the sentinel that named it is queried last. */
  #reject(name: string): void {
    const master = this.#master$.value;
    if (master === undefined || nameOf(master) !== name) return;
    this.#master$.next(undefined);
    this.#sentinels = [...this.#sentinels.slice(1), ...this.#sentinels.slice(0, 1)];
  }

  /** Queries the sentinels although a master is known. When none answers, the next connection attempt logs it. */
  #queryNow(): void {
    this.#subscription.add(this.#queries$.pipe(catchError(() => EMPTY)).subscribe());
  }

  #query(): Observable<void> {
    const { masterName, sentinels } = this.#servers;
    const before = this.#master$.value;
    return firstAnswer(this.#sentinels, {
      open: (sentinel) => this.#client.connectToSentinel(sentinel),
      ask: (connection) => askFor(masterName, connection),
      timeout: this.#client.queryTimeout,
      scheduler: this.#client.scheduler,
      problem: `no sentinel returned the address of the master ${masterName}`,
    }).pipe(
      map(({ server, answer }) => {
        const named = answer.others.slice(0, MAX_NAMED);
        const leftOut = answer.others.length - named.length;
        if (leftOut > 0) this.#tooMany.occurred({ sentinel: nameOf(server), left_out: leftOut });
        // The sentinels before this one did not answer.
        const from = this.#sentinels.findIndex((each) => nameOf(each) === nameOf(server));
        const order = [...this.#sentinels.slice(from), ...this.#sentinels.slice(0, from)];
        const known = new Map([...sentinels, ...named, server].map((each) => [nameOf(each), each]));
        const kept = order.filter((each) => known.delete(nameOf(each)));
        this.#sentinels = [...kept, ...known.values()];
        const current = this.#master$.value;
        // Otherwise another master was announced in the meantime.
        if (current === before || current === undefined) this.#master$.next(answer.master);
      }),
    );
  }

  /**
   * Follows the announcements of a sentinel. Never fails, never completes. When it rejects the subscription, this is
   * logged, and the sentinels are queried every few seconds.
   */
  #watch(sentinel: Server): Observable<unknown> {
    const rejection = this.#client.conditionLog({
      begins: 'a sentinel rejects SUBSCRIBE; failovers may be noticed late',
      ends: 'a sentinel accepts SUBSCRIBE again',
      fields: { sentinel: nameOf(sentinel) },
    });
    const { scheduler } = this.#client;
    const messages$ = new Subject<string>();
    const connection$ = defer(() => this.#client.connectToSentinel(sentinel)).pipe(
      switchMap((connection) =>
        merge(
          defer(() => this.#subscribe(connection, messages$, rejection)).pipe(
            switchMap((error) => (error === undefined ? EMPTY : timer(RESUBSCRIBE, scheduler).pipe(map(() => error)))),
            tap((error) => connection.cut(error)),
          ),
          interval(HEARTBEAT, scheduler).pipe(tap(() => connection.ping(HEARTBEAT))),
        ),
      ),
      retry({ delay: (_, attempt) => timer(RECONNECT(attempt), scheduler), resetOnSuccess: true }),
    );
    return merge(this.#follow(messages$, sentinel), connection$);
  }

  /** Resolves with the error of a sentinel that rejects it. */
  async #subscribe(
    connection: Connection,
    messages$: Subject<string>,
    rejection: ConditionLog,
  ): Promise<Error | undefined> {
    let rejected: Error | undefined;
    try {
      await connection.subscribe('+switch-master', (message) => messages$.next(message));
      rejection.ended();
    } catch (error) {
      if (!isReply(error)) throw error;
      rejection.because(error.message);
      rejected = error;
    }
    // Only after the subscription, so that no announcement is missed in between.
    this.#queryNow();
    return rejected;
  }

  /** Follows the first announcement of a sentinel and then, once a second, the newest. */
  #follow(messages$: Observable<string>, sentinel: Server): Observable<unknown> {
    const tooMany = this.#client.conditionLog({
      begins: 'a sentinel announces masters without pause; the newest of each second is used',
      fields: { sentinel: nameOf(sentinel) },
    });
    let received = 0;
    return messages$.pipe(
      concatMap((message) => announcedMaster(message, this.#servers.masterName)),
      tap(() => (received += 1)),
      throttleTime(FOLLOW_INTERVAL, this.#client.scheduler, { leading: true, trailing: true }),
      tap((master) => {
        if (received > 1) tooMany.occurred({ left_out: received - 1 });
        received = 0;
        // The others may not know of it yet.
        this.#sentinels = [sentinel, ...this.#sentinels.filter((each) => nameOf(each) !== nameOf(sentinel))];
        this.#master$.next(master);
      }),
    );
  }
}

/** @param message the name of the master, its old host and port, and the new ones */
function announcedMaster(message: string, masterName: string): readonly Server[] {
  const [name, , , host, port] = message.split(' ', 5);
  const master = serverOf(host, port);
  return name !== masterName || master === undefined ? [] : [master];
}

async function askFor(masterName: string, connection: Connection): Promise<Answer> {
  const [address, sentinels] = await Promise.all([
    connection.send('SENTINEL', 'get-master-addr-by-name', masterName),
    // A user without permission for this command can still get the address.
    connection.send('SENTINEL', 'sentinels', masterName).catch(() => []),
  ]);
  const master = Array.isArray(address) ? serverOf(address[0], address[1]) : undefined;
  if (master === undefined) throw new Error('does not know the master');
  return { master, others: Array.isArray(sentinels) ? sentinels.flatMap(reachableSentinel) : [] };
}

/**
 * A sentinel in a reply to SENTINEL SENTINELS, a list in which names and values alternate; none if it is not reachable.
 */
function reachableSentinel(fields: unknown): readonly Server[] {
  if (!Array.isArray(fields)) return [];
  function valueOf(name: string): unknown {
    const index = (fields as readonly unknown[]).indexOf(name);
    return index < 0 ? undefined : (fields as readonly unknown[])[index + 1];
  }
  const server = /disconnected|s_down/.test(String(valueOf('flags')))
    ? undefined
    : serverOf(valueOf('ip'), valueOf('port'));
  return server === undefined ? [] : [server];
}

function serverOf(host: unknown, port: unknown): Server | undefined {
  const number = portIn(port);
  return typeof host !== 'string' || host === '' || number === undefined
    ? undefined
    : { kind: 'tcp', host, port: number, family: 0 };
}
