import { type Socket, createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import {
  type PlaincacheCounters,
  type PlaincacheOptions,
  plaincacheCounters,
} from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { serverStates } from '../../support/data/server-states';
import { LocalServer } from '../../support/servers/local-server';

/** The options of a store on these servers, with statistics and a log of its own. */
export function plaincacheTestOptions(
  servers: readonly { readonly address: string }[],
  more: Partial<PlaincacheOptions> = {},
): PlaincacheOptions {
  const { statistics = new Statistics(100), log = new RecordedLog(), scheduler = turnScheduler } = more;
  return {
    hostPort: servers.map(({ address }) => address),
    srv: undefined,
    srvRefresh: 0,
    tlsFiles: undefined,
    windowSpan: 0,
    // Only a server that hangs exceeds it.
    timeoutMs: 10_000,
    expirationJitterMaxSeconds: 300,
    ...{ scheduler, statistics, log, servers: serverStates({ scheduler, statistics, log }) },
    ...more,
  };
}

const opened: PlaincacheCounters[] = [];
// A file that imports this one has its counters closed before its own hooks stop the servers.
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Opens counters, which are closed after the test. */
export function openPlaincache(...given: Parameters<typeof plaincacheTestOptions>): PlaincacheCounters {
  const counters = plaincacheCounters(plaincacheTestOptions(...given));
  opened.push(counters);
  return counters;
}

/** The reply to a line that a server receives, which those to later lines wait for; undefined: none now. */
type Answer = (line: string, socket: Socket) => string | undefined | Promise<string>;

/** A memcached server that answers each line as the test says. */
export class ScriptedServer extends LocalServer {
  /** The lines that were received, without those that ask for the version. */
  readonly received: string[] = [];
  answer: Answer;
  /** How many bytes of a reply are written at once, each time in a turn of the event loop of its own. */
  readonly #chunk: number;

  private constructor(answer: Answer, chunk: number) {
    super(createServer((socket) => this.#serve(socket)));
    this.answer = answer;
    this.#chunk = chunk;
  }

  static start(answer: Answer, chunk = Infinity): Promise<ScriptedServer> {
    return new ScriptedServer(answer, chunk).listen();
  }

  #serve(socket: Socket): void {
    let written = Promise.resolve();
    let rest = '';
    socket
      .setNoDelay(true)
      .setEncoding('latin1')
      .on('data', (text: string) => {
        const lines = (rest + text).split('\r\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          if (line !== 'version') this.received.push(line);
          const reply = this.answer(line, socket);
          if (reply !== undefined) written = written.then(async () => this.#write(socket, await reply));
        }
      });
  }

  async #write(socket: Socket, reply: string): Promise<void> {
    for (let at = 0; at < reply.length; at += this.#chunk) {
      socket.write(reply.slice(at, at + this.#chunk), 'latin1');
      if (this.#chunk < reply.length) await nextTurn();
    }
  }
}

/**
 * Answers the first words of lines with these replies; values follow `add` and `set` on lines of their own, without a
 * reply.
 */
export function replies(byCommand: Readonly<Record<string, string>>): Answer {
  return (line) => byCommand[line.split(' ')[0]!] ?? (line === 'version' ? 'VERSION 1.6.18\r\n' : undefined);
}
