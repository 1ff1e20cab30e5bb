import { type Observable, firstValueFrom, switchMap, timeout as timeLimit } from 'rxjs';
import { type Credentials, type Server, nameOf } from '../../connections/address';
import { type Connection, connect } from '../../connections/connection';
import type { TlsMaterial } from '../../connections/tls-material';
import { masterOf, othersOf } from './replies';
import { messageOf } from '../../../../../text/thrown';

/** What a sentinel may take to connect, and again to answer, in milliseconds: one that hangs must not keep us from the next. */
const PATIENCE = 1000;

export interface SentinelsOptions {
  readonly masterName: string;
  readonly sentinels: readonly Server[];
  readonly credentials: Credentials | undefined;
  readonly tls: TlsMaterial | undefined;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
}

/** The sentinels: those of the settings, and those that they know of while these answer. */
export class Sentinels {
  readonly #options: SentinelsOptions;
  /** In the order in which they are asked: the one that answered last comes first. */
  #order: readonly Server[];
  readonly #patience: number;
  #asked: Promise<Server> | undefined;

  constructor(options: SentinelsOptions) {
    this.#options = options;
    this.#order = options.sentinels;
    this.#patience = options.timeout > 0 ? Math.min(options.timeout, PATIENCE) : PATIENCE;
  }

  get masterName(): string {
    return this.#options.masterName;
  }

  /** Where the master is; questions at the same time are one. */
  master(): Promise<Server> {
    this.#asked ??= this.#askInTurn().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  connect(server: Server): Observable<Connection> {
    const { credentials, tls } = this.#options;
    return connect({ server, credentials, db: 0, tls, mustBeMaster: false, timeout: this.#patience });
  }

  async #askInTurn(): Promise<Server> {
    const failures: string[] = [];
    for (const sentinel of this.#order) {
      try {
        return await this.#ask(sentinel);
      } catch (error) {
        failures.push(`${nameOf(sentinel)}: ${messageOf(error)}`);
      }
    }
    throw new Error(`no sentinel names the master ${this.masterName} (${failures.join('; ')})`);
  }

  async #ask(sentinel: Server): Promise<Server> {
    const answers$ = this.connect(sentinel).pipe(
      switchMap((connection) =>
        Promise.all([
          connection.send('SENTINEL', 'get-master-addr-by-name', this.masterName),
          // Who may not ask for the others can still be told of the master.
          connection.send('SENTINEL', 'sentinels', this.masterName).catch(() => []),
        ]),
      ),
      timeLimit({ first: 2 * this.#patience }),
    );
    const [master, others] = await firstValueFrom(answers$);
    const server = masterOf(master);
    if (server === undefined) throw new Error('knows no such master');
    this.#order = distinct([sentinel, ...this.#options.sentinels, ...othersOf(others)]);
    return server;
  }
}

function distinct(servers: readonly Server[]): readonly Server[] {
  return [...new Map(servers.map((server) => [nameOf(server), server])).values()];
}
