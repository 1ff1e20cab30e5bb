import { Command, Redis, type RedisOptions } from 'ioredis';
import { Observable } from 'rxjs';
import { type Credentials, type Server, nameOf } from './address';
import { bare, isReply, replyCode } from './store-error';
import type { TlsMaterial } from './tls-material';
import { hideSecrets } from '../../../../text/hide-credentials';

export interface ConnectionOptions {
  readonly server: Server;
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: TlsMaterial | undefined;
  /** A server that says it is no master is not taken (a sentinel may name one that has just stopped being it). */
  readonly mustBeMaster: boolean;
  /** Milliseconds that connecting and greeting may take; 0: no limit. */
  readonly timeout: number;
}

/**
 * One connection to one server, for one life: it never connects again.
 *
 * That is why no count is ever applied twice. The client sends a command that was on its way when a connection was cut once
 * more over the next one; here there is no next one, so a command is written once and, when its connection is lost, fails.
 * What failed so may have been counted or not; nobody here sends it again.
 */
export class Connection {
  readonly #redis: Redis;
  /** Whether the server refuses scripts to us; learned from its first answer to one. */
  refusesScripts = false;
  /** Whether a reply said that the server is a read-only replica. */
  isReadonly = false;
  readonly #stream: Redis['stream'];

  constructor(
    redis: Redis,
    /** The server's name, as in {@link nameOf}. */
    readonly server: string,
    /** A password was given that the server has no use for. */
    readonly hasNeedlessPassword: boolean,
  ) {
    this.#redis = redis;
    this.#stream = redis.stream;
  }

  get isOpen(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Sends one command; integers and texts come back as they are. */
  send(name: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#redis.sendCommand(new Command(name, args, { replyEncoding: 'utf8' })) as Promise<unknown>;
  }

  /** As {@link send}, for replies of integers alone: spares a pass over them. */
  sendForIntegers(name: string, args: (string | number)[]): Promise<unknown> {
    return this.#redis.sendCommand(new Command(name, args, { replyEncoding: null })) as Promise<unknown>;
  }

  /** What is sent within goes out in one write. */
  together<T>(send: () => T): T {
    this.#stream.cork();
    try {
      return send();
    } finally {
      this.#stream.uncork();
    }
  }

  /** Hears the messages of a channel, for as long as the connection lives. */
  async subscribe(channel: string, heard: (message: string) => void): Promise<void> {
    this.#redis.on('message', (_channel: string, message: string) => heard(message));
    await this.#redis.subscribe(channel);
  }

  /** Cuts the connection at once; what is under way on it fails. */
  destroy(): void {
    closeAtOnce(this.#redis);
  }
}

/** The client's own `disconnect` says goodbye and waits for a peer that may hang; it is for a socket that is not there yet. */
function closeAtOnce(redis: Redis): void {
  if (redis.stream === undefined) redis.disconnect();
  else redis.stream.destroy();
}

/**
 * A connection as a stream: emits once it can be used, fails when it could not be made or is lost, never completes.
 * Unsubscribing closes it.
 */
export function connect(options: ConnectionOptions): Observable<Connection> {
  return new Observable<Connection>((subscriber) => {
    const { server, timeout } = options;
    const redis = new Redis(clientOptions(options));
    let reason: Error | undefined;
    function cut(): void {
      closeAtOnce(redis);
    }
    function fail(error: Error): void {
      reason ??= error;
      cut();
    }
    const timer =
      timeout > 0 ? setTimeout(() => fail(new Error(`no answer within ${timeout} ms`)), timeout) : undefined;
    redis.once('connect', () => catchWhatParsingThrows(redis.stream, fail));
    // Whatever is wrong with a connection ends it: one that has lost its place among replies must not count on.
    redis.on('error', (error: Error) => fail(bare(error)));
    redis.once('end', () => subscriber.error(reason ?? new Error('the server closed the connection')));
    redis.once('ready', () => {
      greet(redis, options).then(
        ({ hasNeedlessPassword }) => {
          clearTimeout(timer);
          subscriber.next(new Connection(redis, nameOf(server), hasNeedlessPassword));
        },
        (error: Error) => fail(bare(error)),
      );
    });
    // The outcome is told by the events.
    redis.connect().catch(() => undefined);
    return () => {
      clearTimeout(timer);
      cut();
    };
  });
}

/** A reply with an impossible length makes the client's parser throw where nobody catches: it would end the process. */
function catchWhatParsingThrows(stream: Redis['stream'], fail: (error: Error) => void): void {
  for (const parse of stream.listeners('data')) {
    stream.off('data', parse as () => void);
    stream.on('data', (bytes: Buffer) => {
      try {
        parse.call(stream, bytes);
      } catch (error) {
        fail(new Error('what answers there does not speak the protocol of Redis', { cause: error }));
      }
    });
  }
}

function clientOptions({ server, tls }: ConnectionOptions): RedisOptions {
  return {
    ...(server.kind === 'unix' ? { path: server.path } : server),
    ...(tls !== undefined && { tls: tls.options() }),
    lazyConnect: true,
    // One life (see Connection): no reconnecting, and nothing is kept to be sent later.
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // Our own greeting follows: it bounds the whole of it, and says what is wrong without the client's console lines.
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: 0,
  };
}

/** Authenticates, chooses the database, and makes sure that the server is there to count. */
async function greet(
  redis: Redis,
  { credentials, db, mustBeMaster }: ConnectionOptions,
): Promise<{ readonly hasNeedlessPassword: boolean }> {
  const hasNeedlessPassword = credentials !== undefined && !(await isAuthenticated(redis, credentials));
  if (db !== 0) await redis.call('SELECT', db);
  try {
    // LOADING and NOAUTH show here, before a call meets them.
    const reply = mustBeMaster ? await redis.call('ROLE') : await redis.call('PING');
    if (mustBeMaster && Array.isArray(reply) && reply[0] !== 'master')
      throw new Error('the server is not a master yet');
  } catch (error) {
    // Who may not ask can still count.
    if (replyCode(error) !== 'NOPERM') throw error;
  }
  return { hasNeedlessPassword };
}

function withoutArguments(reply: string): string {
  return reply.replace(/,? with args beginning with:[^]*/, '');
}

/** @returns false where the server knows no password */
async function isAuthenticated(redis: Redis, { username, password }: Credentials): Promise<boolean> {
  try {
    await redis.call('AUTH', ...(username === undefined ? [password] : [username, password]));
    return true;
  } catch (error) {
    // As servers before and since version 6 say it.
    if (isReply(error) && /no password is set|without any password configured/.test(error.message)) return false;
    // A server that does not know the command quotes the beginning of its arguments.
    if (error instanceof Error) error.message = hideSecrets([password], 1)(withoutArguments(error.message));
    throw error;
  }
}
