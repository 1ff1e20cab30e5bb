import { Command, Redis, type RedisOptions } from 'ioredis';
import {
  EMPTY,
  Observable,
  type SchedulerLike,
  catchError,
  concatMap,
  defer,
  from,
  map,
  merge,
  switchMap,
  take,
  throwIfEmpty,
} from 'rxjs';
import { afterTime, failAfter } from '../../../streams/deadline';
import { hideSecrets } from '../../../text/hide-credentials';
import { messageOf } from '../../../text/thrown';
import { type Server, nameOf } from '../server-address';
import type { StoreTls } from '../tls-material';
import { COUNT } from './count-script';
import type { Credentials } from './deployment';
import { PipelineReplies } from './protocol';
import { ReplyBounds } from './reply-bounds';
import { checkedInteger, checkedReply } from './replies';
import { InvalidReply, isReply, replyCode, withoutCommand } from './store-error';

export interface ConnectionOptions {
  readonly server: Server;
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: StoreTls | undefined;
  /** Rejects a server that is not a master: a sentinel may name one that has just been demoted. */
  readonly mustBeMaster: boolean;
  /** Whether it is for counting: the handshake loads the script. */
  readonly counts: boolean;
  /** Milliseconds that connecting and the handshake may take; 0: no limit. */
  readonly timeout: number;
  readonly scheduler: SchedulerLike;
  /** Called with the reply that ends the connection, if one does. */
  readonly onInvalidReply?: ((error: InvalidReply) => void) | undefined;
}

/**
 * Milliseconds that a connection over TLS may take if there is no other limit: a server without TLS may wait for more
 * bytes forever.
 */
const TLS_TIMEOUT = 10_000;

/**
 * One connection to one server, which never reconnects.
 *
 * That is why no count is applied twice. After a reconnect ioredis sends the commands again that were in flight when
 * the connection was lost; without a reconnect a command is written once and fails when its connection is lost. The
 * server may or may not have applied such a command, and the stores do not send it again.
 */
export class Connection {
  /** The server's name, as in {@link nameOf}. */
  readonly server: string;
  /** The error with which the server rejects scripts on this connection; known from its first reply to one. */
  scriptRejection: Error | undefined;
  /** A password is configured, but the server requires none. */
  hasUnusedPassword = false;
  /** Cuts the connection without waiting for the peer; it is lost for this reason, and commands in flight fail. */
  readonly cut: (reason: Error) => void;
  readonly #redis: Redis;
  readonly #stream: Redis['stream'];
  readonly #pipeline: PipelineReplies;
  readonly #scheduler: SchedulerLike;
  /** Single commands that have no reply. */
  #unanswered = 0;

  constructor(
    redis: Redis,
    pipeline: PipelineReplies,
    { server, scheduler, cut }: Pick<ConnectionOptions, 'server' | 'scheduler'> & Pick<Connection, 'cut'>,
  ) {
    this.#scheduler = scheduler;
    this.#redis = redis;
    this.#stream = redis.stream;
    this.#pipeline = pipeline;
    this.server = nameOf(server);
    this.cut = cut;
  }

  get isOpen(): boolean {
    // ioredis learns only in a later phase of the event loop that the socket was destroyed.
    return this.#redis.status === 'ready' && !this.#stream.destroyed;
  }

  /**
   * Whether {@link sendPipeline} may be called for several commands: every one that was sent by {@link send} has its
   * reply.
   */
  get isQuiet(): boolean {
    return this.#unanswered === 0;
  }

  /**
   * Sends one command; resolves with its reply, bulk strings as text. A reply that it cannot have cuts the connection.
   */
  send(name: string, ...args: (string | number)[]): Promise<unknown> {
    this.#unanswered += 1;
    const reply = this.#redis.sendCommand(new Command(name, args, { replyEncoding: 'utf8' })) as Promise<unknown>;
    return reply
      .finally(() => (this.#unanswered -= 1))
      .then((each) => this.#checked(() => checkedReply(name, args, each)));
  }

  /** Like {@link send}, for a command that is encoded already and whose reply holds only integers. */
  sendEncoded(name: string, encoded: string): Promise<unknown> {
    return this.#redis.sendCommand(new EncodedCommand(name, encoded)) as Promise<unknown>;
  }

  /**
   * Sends commands that are encoded already, each of which has an integer or an error as its reply, in one write.
   * Resolves with the replies, when all have arrived. Other commands wait for that.
   */
  async sendPipeline(name: string, encoded: string, count: number): Promise<readonly (number | Error)[]> {
    this.#pipeline.expect(count - 1);
    // What waits for the last reply: until then, its connection may be lost.
    const reply = this.#redis.sendCommand(new EncodedCommand(name, encoded)) as Promise<unknown>;
    const last = await reply.catch((error: Error) => {
      if (isReply(error)) return error;
      throw error;
    });
    return this.#checked(() => [...this.#pipeline.replies, checkedInteger('INCRBY', last)]);
  }

  #checked<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      this.cut(error as Error);
      throw error;
    }
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

  /**
   * Cuts the connection if its peer does not answer a PING in time, which is all that is known of a peer that hangs.
   *
   * @param isDue called when the time is over; false: the connection is kept
   * @returns whether it has answered, once that is known
   */
  ping(milliseconds: number, isDue: () => boolean = () => true): Promise<boolean> {
    const timer = afterTime(this.#scheduler, milliseconds, {
      onElapsed: () => isDue() && this.cut(noReply(milliseconds)),
    });
    // An error reply is a sign of life too, and a lost connection reports itself.
    return this.send('PING')
      .then(
        () => true,
        (error: unknown) => isReply(error),
      )
      .finally(() => timer.unsubscribe());
  }
}

/**
 * A command in the form in which it is written. ioredis copies, checks and encodes a list of arguments, which for
 * scripts of many keys takes longer than encoding them here.
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

/**
 * Opens a connection. Emits it once, when it can be used; fails when it cannot be made or is lost; never completes.
 * Unsubscribing closes it.
 */
export function connect(options: ConnectionOptions): Observable<Connection> {
  return new Observable<Connection>((subscriber) => {
    const { server, tls, scheduler } = options;
    const timeout = options.timeout === 0 && tls !== undefined ? TLS_TIMEOUT : options.timeout;
    const redis = new Redis(clientOptions(options));
    let isUsable = false;
    function fail(error: Error): void {
      if (subscriber.closed) return;
      const reason = isUsable ? error : withTlsHint(error, tls !== undefined);
      if (reason instanceof InvalidReply) options.onInvalidReply?.(reason);
      subscriber.error(reason);
    }
    const timer = timeout > 0 ? afterTime(scheduler, timeout, { onElapsed: () => fail(noReply(timeout)) }) : undefined;
    const pipeline = new PipelineReplies();
    redis.once('connect', () => guardParser(redis, { bounds: new ReplyBounds(options.counts), pipeline, fail }));
    // Every error ends the connection: once replies no longer match commands, its counts would be wrong.
    redis.on('error', (error: Error) =>
      fail(error.message.startsWith(UNASKED) ? new InvalidReply('comes without a command') : withoutCommand(error)),
    );
    redis.once('end', () => fail(new Error('the server closed the connection')));
    redis.once('ready', () => {
      const connection = new Connection(redis, pipeline, { server, scheduler, cut: fail });
      handshake(connection, options).then(
        () => {
          timer?.unsubscribe();
          isUsable = true;
          subscriber.next(connection);
        },
        (error: Error) => fail(withoutCommand(error)),
      );
    });
    // The events above report the outcome.
    redis.connect().catch(() => undefined);
    return () => {
      timer?.unsubscribe();
      // `disconnect` sends a FIN and waits for a peer that may hang, so it serves only while there is no socket yet.
      if (redis.stream === undefined) redis.disconnect();
      else redis.stream.destroy();
    };
  });
}

interface Guards {
  readonly bounds: ReplyBounds;
  readonly pipeline: PipelineReplies;
  readonly fail: (error: Error) => void;
}

/**
 * Checks each chunk, and reads the replies to a pipeline in it, before the parser of ioredis reads the rest. Whatever
 * one of them throws ends the connection; uncaught, it would end the process.
 */
function guardParser(redis: Redis, { bounds, pipeline, fail }: Guards): void {
  const { stream } = redis;
  for (const parse of stream.listeners('data')) {
    stream.off('data', parse as () => void);
    stream.on('data', (bytes: Buffer) => {
      try {
        bounds.check(bytes);
        const rest = pipeline.read(bytes);
        if (rest.length > 0) parse.call(stream, rest);
      } catch (error) {
        const problem = error instanceof InvalidReply ? error.problem : 'does not fit it';
        fail(new InvalidReply(problem, redis.commandQueue.peekFront()?.command.name));
      }
    });
  }
}

function clientOptions({ server, tls }: ConnectionOptions): RedisOptions {
  return {
    ...(server.kind === 'unix' ? { path: server.path } : server),
    ...(tls !== undefined && { tls: tls() }),
    lazyConnect: true,
    // No reconnect (see Connection), and no queue of commands to send later.
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // handshake() replaces those of ioredis: it has one time limit, and ioredis would write warnings to the console.
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: 0,
  };
}

/** The messages of servers before version 6, and from 6 on. */
const NO_PASSWORD_REQUIRED = /no password is set|without any password configured/;

/**
 * Authenticates, selects the database, checks that the server accepts commands, and loads the script, all in one write.
 */
async function handshake(connection: Connection, options: ConnectionOptions): Promise<void> {
  const { credentials, db, mustBeMaster, counts } = options;
  function call(name: string, ...args: (string | number)[]): Promise<unknown> {
    return connection.send(name, ...args).catch((error: unknown) => error);
  }
  const { auth, select, check } = connection.inOneWrite(() => ({
    auth:
      credentials &&
      call('AUTH', ...(credentials.username === undefined ? [] : [credentials.username]), credentials.password),
    select: db !== 0 && call('SELECT', db),
    check: call(mustBeMaster ? 'ROLE' : 'PING'),
    // Not waited for: what follows on the connection is answered later. Without permission, the first call by text
    // loads the script.
    load: counts && call('SCRIPT', 'LOAD', COUNT.text),
  }));
  // One after the other: a server that rejects the connection answers the first command and none of the others.
  const authenticated = await auth;
  connection.hasUnusedPassword = isReply(authenticated) && NO_PASSWORD_REQUIRED.test(authenticated.message);
  if (authenticated instanceof Error && !connection.hasUnusedPassword)
    throw withoutPassword(authenticated, credentials);
  const selected = await select;
  if (selected instanceof Error) throw selected;
  const role = await check;
  // Fails with LOADING or NOAUTH here and not in a call. A user without permission for these commands can still count.
  if (role instanceof Error && replyCode(role) !== 'NOPERM') throw role;
  if (mustBeMaster && Array.isArray(role) && role[0] !== 'master') throw new Error('the server is not a master');
}

/** The error of AUTH. A server without this command quotes the beginning of its arguments. */
function withoutPassword(error: Error, credentials: Credentials | undefined): Error {
  const message = error.message.replace(/,? with args beginning with:[^]*/, '');
  error.message = hideSecrets([credentials?.password ?? ''], 1)(message);
  return error;
}

/** What the error of ioredis begins with when a reply arrives and no command waits for one. */
const UNASKED = 'Command queue state error';

/** What is read from a server without TLS. */
const PLAIN_REPLY = /wrong version number|packet length too long/;
/**
 * The first byte of an alert, with which a server may answer that speaks only TLS; it may as well close the connection.
 */
const TLS_ALERT = 'begins with the byte 0x15';

/** The reason why a connection could not be made; when it looks like it, that only one side uses TLS. */
function withTlsHint(error: Error, usesTls: boolean): Error {
  const { message } = error;
  function because(reason: string): Error {
    return new Error(reason, { cause: error });
  }
  if (usesTls) {
    if (PLAIN_REPLY.test(message)) return because('the server does not speak TLS, but is configured with TLS');
    return message.startsWith(NO_REPLY)
      ? because(`${message}; it is configured with TLS: does the server speak TLS?`)
      : error;
  }
  if (message.includes(TLS_ALERT)) return because('the server speaks only TLS, but is configured without TLS');
  const isClosed = /closed the connection|ECONNRESET|EPIPE/.test(message);
  return isClosed ? because(`${message}; it is configured without TLS: does the server require TLS?`) : error;
}

const NO_REPLY = 'no reply within';

function noReply(milliseconds: number): Error {
  return new Error(`${NO_REPLY} ${milliseconds} ms`);
}

export interface Question<T> {
  readonly open: (server: Server) => Observable<Connection>;
  readonly ask: (connection: Connection, server: Server) => Promise<T>;
  /** The time for each server, in milliseconds. */
  readonly timeout: number;
  readonly scheduler: SchedulerLike;
  /** The beginning of the error when no server answers. */
  readonly problem: string;
}

/**
 * Asks servers one after the other, each on a connection of its own. Emits the first answer, with its server, and
 * completes; fails with the reason of each server.
 */
export function firstAnswer<T>(
  servers: readonly Server[],
  { open, ask, timeout, scheduler, problem }: Question<T>,
): Observable<{ readonly server: Server; readonly answer: T }> {
  return defer(() => {
    const failures: string[] = [];
    return from(servers).pipe(
      concatMap((server) => {
        const answer$ = open(server).pipe(switchMap((connection) => ask(connection, server)));
        return merge(answer$, failAfter(scheduler, timeout, noReply(timeout))).pipe(
          take(1),
          map((answer) => ({ server, answer })),
          catchError((error: unknown) => {
            failures.push(`${nameOf(server)}: ${messageOf(error)}`);
            return EMPTY;
          }),
        );
      }),
      take(1),
      throwIfEmpty(() => new Error(`${problem} (${failures.join('; ')})`)),
    );
  });
}
