import { type Socket, createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { LocalServer } from './local-server';

interface SlowMemcachedOptions {
  /** The time that each key of a command takes, in milliseconds; 0 if undefined. */
  readonly timePerKey?: number;
  /** How many keys it takes before it hangs; unlimited if undefined. */
  readonly keys?: number;
}

/** Shorter times are waited for together, because every wait takes longer on a busy machine. */
const SHORTEST_WAIT = 20;

const NEVER = new Promise<never>(() => undefined);

/** A memcached in this process that knows get, incr, add and version. As the real one, it replies to a `get` when it has all keys. */
export class SlowMemcached extends LocalServer {
  readonly values = new Map<string, number>();
  readonly #timePerKey: number;
  #keysLeft: number;
  #timeDue = 0;

  private constructor({ timePerKey = 0, keys = Infinity }: SlowMemcachedOptions) {
    // A client that has given up resets its connection.
    super(createServer((socket) => void this.#serve(socket).catch(() => undefined)));
    this.#timePerKey = timePerKey;
    this.#keysLeft = keys;
  }

  static start(options: SlowMemcachedOptions = {}): Promise<SlowMemcached> {
    return new SlowMemcached(options).listen();
  }

  async #serve(socket: Socket): Promise<void> {
    /** The key of an `add` whose value is on the next line. */
    let added: string | undefined;
    let rest = '';
    for await (const chunk of socket.setEncoding('latin1')) {
      const lines = (rest + String(chunk)).split('\r\n');
      rest = lines.pop() ?? '';
      let replies = '';
      for (const line of lines) {
        if (added !== undefined) {
          replies += this.#add(added, Number(line));
          added = undefined;
          continue;
        }
        const [command = '', ...words] = line.split(' ');
        const keys = command === 'get' ? words : words.slice(0, 1);
        this.#keysLeft -= keys.length;
        if (this.#keysLeft < 0) {
          socket.write(replies);
          await NEVER;
        }
        this.#timeDue += keys.length * this.#timePerKey;
        if (this.#timeDue >= SHORTEST_WAIT) {
          socket.write(replies);
          replies = '';
          const time = this.#timeDue;
          this.#timeDue = 0;
          await wait(time);
        }
        if (command === 'add') added = keys[0];
        else replies += this.#replyTo(command, words);
      }
      socket.write(replies);
    }
  }

  #replyTo(command: string, words: readonly string[]): string {
    if (command === 'version') return 'VERSION 1.6.0\r\n';
    if (command === 'get') return `${words.map((key) => this.#valueOf(key)).join('')}END\r\n`;
    const [key = '', hits] = words;
    const before = this.values.get(key);
    if (before === undefined) return 'NOT_FOUND\r\n';
    this.values.set(key, before + Number(hits));
    return `${before + Number(hits)}\r\n`;
  }

  #valueOf(key: string): string {
    const value = this.values.get(key);
    return value === undefined ? '' : `VALUE ${key} 0 ${String(value).length}\r\n${value}\r\n`;
  }

  #add(key: string, value: number): string {
    if (this.values.has(key)) return 'NOT_STORED\r\n';
    this.values.set(key, value);
    return 'STORED\r\n';
  }
}
