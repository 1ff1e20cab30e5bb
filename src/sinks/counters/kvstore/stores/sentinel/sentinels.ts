import { type Observable, firstValueFrom, switchMap } from 'rxjs';
import { messageOf } from '../../../../../text/thrown';
import { type Server, nameOf } from '../../../server-address';
import type { Credentials } from '../../connections/address';
import { type Connection, connect } from '../../connections/connection';
import { limitReplyTime } from '../../connections/reply-timer';
import type { TlsMaterial } from '../../../tls-material';
import { masterOf, sentinelsOf } from './replies';

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

/** Finds the master: queries the sentinels of the settings, and those that these know of. */
export class Sentinels {
  readonly #options: SentinelsOptions;
  /** In the order of queries: the sentinel that replied last comes first. */
  #order: readonly Server[];
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
    this.#query ??= this.#queryInOrder().finally(() => {
      this.#query = undefined;
    });
    return this.#query;
  }

  connect(server: Server): Observable<Connection> {
    const { credentials, tls } = this.#options;
    return connect({ server, credentials: credentials(), db: 0, tls, mustBeMaster: false, timeout: this.#timeout });
  }

  async #queryInOrder(): Promise<Server> {
    const failures: string[] = [];
    for (const sentinel of this.#order) {
      try {
        return await this.#queryOne(sentinel);
      } catch (error) {
        failures.push(`${nameOf(sentinel)}: ${messageOf(error)}`);
      }
    }
    throw new Error(`no sentinel returned the address of the master ${this.masterName} (${failures.join('; ')})`);
  }

  async #queryOne(sentinel: Server): Promise<Server> {
    const replies$ = this.connect(sentinel).pipe(
      switchMap((connection) =>
        Promise.all([
          connection.send('SENTINEL', 'get-master-addr-by-name', this.masterName),
          // A user without permission for the list can still get the address of the master.
          connection.send('SENTINEL', 'sentinels', this.masterName).catch(() => []),
        ]),
      ),
      limitReplyTime(2 * this.#timeout),
    );
    const [master, others] = await firstValueFrom(replies$);
    const server = masterOf(master);
    if (server === undefined) throw new Error('does not know the master');
    this.#order = distinct([sentinel, ...this.#options.sentinels, ...sentinelsOf(others)]);
    return server;
  }
}

function distinct(servers: readonly Server[]): readonly Server[] {
  return [...new Map(servers.map((server) => [nameOf(server), server])).values()];
}
