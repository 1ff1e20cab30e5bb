import { Command, Redis, type RedisOptions } from 'ioredis';
import { Observable } from 'rxjs';
import { startReplyTimer } from '../../../../net/reply-timer';
import { hideSecrets } from '../../../../text/hide-credentials';
import { type Server, nameOf } from '../../server-address';
import type { Credentials } from './address';
import { isReply, replyCode, withoutCommand } from './store-error';
import type { TlsMaterial } from '../../tls-material';
import { explainTlsMismatch } from './tls-mismatch';

export interface ConnectionOptions {
  readonly server: Server;
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: TlsMaterial | undefined;
  /** Rejects a server that is not a master: a sentinel may name one that has just been demoted. */
  readonly mustBeMaster: boolean;
  /** Milliseconds that connecting and the handshake may take; 0: no limit. */
  readonly timeout: number;
}

/**
 * One connection to one server, which never reconnects.
 *
 * That is why no count is applied twice. After a reconnect ioredis sends the commands again that were in flight when the
 * connection was lost; without a reconnect a command is written once and fails when its connection is lost. The server may or
 * may not have applied such a command, and the stores do not send it again.
 */
export class Connection {
  readonly #redis: Redis;
  /** Whether the server rejects scripts on this connection; known from its first reply to one. */
  rejectsScripts = false;
  readonly #stream: Redis['stream'];

  constructor(
    redis: Redis,
    /** The server's name, as in {@link nameOf}. */
    readonly server: string,
    /** A password is configured, but the server requires none. */
    readonly hasUnusedPassword: boolean,
  ) {
    this.#redis = redis;
    this.#stream = redis.stream;
  }

  get isOpen(): boolean {
    // ioredis learns only in a later phase of the event loop that the socket was destroyed.
    return this.#redis.status === 'ready' && !this.#stream.destroyed;
  }

  /** Sends one command; resolves with its reply, bulk strings as text. */
  send(name: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#redis.sendCommand(new Command(name, args, { replyEncoding: 'utf8' })) as Promise<unknown>;
  }

  /** Like {@link send}, for a command that is encoded already and whose reply holds only integers. */
  sendEncoded(name: string, encoded: string): Promise<unknown> {
    return this.#redis.sendCommand(new EncodedCommand(name, encoded)) as Promise<unknown>;
  }

  /** Sends the commands of the callback in one write. */
  inOneWrite<T>(send: () => T): T {
    this.#stream.cork();
    try {
      return send();
    } finally {
      this.#stream.uncork();
    }
  }

  /** Subscribes to a channel until the connection is lost. Resolves when the server has confirmed the subscription. */
  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#redis.on('message', (_channel: string, message: string) => onMessage(message));
    await this.#redis.subscribe(channel);
  }

  /** Cuts the connection without waiting for the peer; commands in flight fail. */
  destroy(): void {
    destroySocket(this.#redis);
  }
}

/**
 * A command in the form in which it is written. ioredis copies, checks and encodes a list of arguments, which for scripts of many
 * keys takes longer than encoding them here.
 */
class EncodedCommand extends Command {
  readonly #encoded: string;

  constructor(name: string, encoded: string) {
    // Without an encoding, the pass that decodes the strings of the reply is saved.
    super(name, [], { replyEncoding: null });
    this.#encoded = encoded;
  }

  override toWritable(): string {
    return this.#encoded;
  }
}

/** `disconnect` of ioredis sends a FIN and waits for a peer that may hang, so it serves only while there is no socket yet. */
function destroySocket(redis: Redis): void {
  if (redis.stream === undefined) redis.disconnect();
  else redis.stream.destroy();
}

/**
 * Opens a connection. Emits it once, when it can be used; fails when it cannot be made or is lost; never completes.
 * Unsubscribing closes it.
 */
export function connect(options: ConnectionOptions): Observable<Connection> {
  return explainTlsMismatch(open(options), { ...options, usesTls: options.tls !== undefined });
}

function open(options: ConnectionOptions): Observable<Connection> {
  return new Observable<Connection>((subscriber) => {
    const { server, timeout } = options;
    const redis = new Redis(clientOptions(options));
    let reason: Error | undefined;
    function cut(): void {
      destroySocket(redis);
    }
    function fail(error: Error): void {
      reason ??= error;
      cut();
    }
    const stopTimer =
      timeout > 0 ? startReplyTimer(timeout, () => fail(new Error(`no reply within ${timeout} ms`))) : undefined;
    redis.once('connect', () => catchParserErrors(redis.stream, fail));
    // Every error ends the connection: once replies no longer match commands, its counts would be wrong.
    redis.on('error', (error: Error) => fail(withoutCommand(error)));
    redis.once('end', () => subscriber.error(reason ?? new Error('the server closed the connection')));
    redis.once('ready', () => {
      handshake(redis, options).then(
        ({ hasUnusedPassword }) => {
          stopTimer?.();
          subscriber.next(new Connection(redis, nameOf(server), hasUnusedPassword));
        },
        (error: Error) => fail(withoutCommand(error)),
      );
    });
    // The events above report the outcome.
    redis.connect().catch(() => undefined);
    return () => {
      stopTimer?.();
      cut();
    };
  });
}

/** The parser of ioredis throws on a reply with an impossible length; uncaught, that would end the process. */
function catchParserErrors(stream: Redis['stream'], fail: (error: Error) => void): void {
  for (const parse of stream.listeners('data')) {
    stream.off('data', parse as () => void);
    stream.on('data', (bytes: Buffer) => {
      try {
        parse.call(stream, bytes);
      } catch (error) {
        fail(new Error('the server does not speak the Redis protocol', { cause: error }));
      }
    });
  }
}

function clientOptions({ server, tls }: ConnectionOptions): RedisOptions {
  return {
    ...(server.kind === 'unix' ? { path: server.path } : server),
    ...(tls !== undefined && { tls: tls.options() }),
    lazyConnect: true,
    // No reconnect (see Connection), and no queue of commands to send later.
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // handshake() replaces those of ioredis: it has one time limit, and ioredis would write warnings to the console.
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: 0,
  };
}

/** Authenticates, selects the database, and checks that the server accepts commands. */
async function handshake(
  redis: Redis,
  { credentials, db, mustBeMaster }: ConnectionOptions,
): Promise<{ readonly hasUnusedPassword: boolean }> {
  const hasUnusedPassword = credentials !== undefined && !(await authenticate(redis, credentials));
  if (db !== 0) await redis.call('SELECT', db);
  try {
    // Fails with LOADING or NOAUTH here and not in a call.
    const reply = mustBeMaster ? await redis.call('ROLE') : await redis.call('PING');
    if (mustBeMaster && Array.isArray(reply) && reply[0] !== 'master') throw new Error('the server is not a master');
  } catch (error) {
    // A user without permission for these commands can still count.
    if (replyCode(error) !== 'NOPERM') throw error;
  }
  return { hasUnusedPassword };
}

function withoutArguments(reply: string): string {
  return reply.replace(/,? with args beginning with:[^]*/, '');
}

/** @returns false when the server requires no password */
async function authenticate(redis: Redis, { username, password }: Credentials): Promise<boolean> {
  try {
    await redis.call('AUTH', ...(username === undefined ? [password] : [username, password]));
    return true;
  } catch (error) {
    // The messages of servers before version 6, and from 6 on.
    if (isReply(error) && /no password is set|without any password configured/.test(error.message)) return false;
    // A server without the AUTH command quotes the beginning of its arguments in the error.
    if (error instanceof Error) error.message = hideSecrets([password], 1)(withoutArguments(error.message));
    throw error;
  }
}
