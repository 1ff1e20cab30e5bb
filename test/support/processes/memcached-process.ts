import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePorts } from './free-ports';
import { SUPERVISOR } from './supervisor';
import { until } from '../waiting/until';

/** Milliseconds after which a server that does not listen has probably rejected its arguments. */
const START_TIMEOUT = 60_000;

export interface MemcachedOptions {
  /** Arguments in addition to the address, for example `['-M']`. */
  readonly args?: readonly string[];
  /** Listens on a Unix socket instead of a port. */
  readonly onSocket?: boolean;
}

/** A real memcached on a free port of 127.0.0.1 or on a Unix socket. */
export class MemcachedProcess implements AsyncDisposable {
  /** `host:port`, or the path of the socket. */
  readonly address: string;
  readonly #args: readonly string[];
  readonly #folder: string;
  #child: ChildProcess | undefined;
  #pid = 0;

  private constructor(address: string, args: readonly string[], folder: string) {
    this.address = address;
    this.#args = args;
    this.#folder = folder;
  }

  static async start({ args = [], onSocket = false }: MemcachedOptions = {}): Promise<MemcachedProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-memcached-'));
    const [port] = await freePorts(1);
    const socket = join(folder, 'memcached.sock');
    const server = new MemcachedProcess(
      onSocket ? socket : `127.0.0.1:${port}`,
      [...(onSocket ? ['-s', socket] : ['-l', '127.0.0.1', '-p', String(port), '-U', '0']), ...args],
      folder,
    );
    await server.run();
    return server;
  }

  /** Starts the server, also after a crash, and waits until it accepts connections. */
  async run(): Promise<void> {
    const command = ['memcached', '-u', 'root', ...this.#args];
    const child = spawn('sh', ['-c', SUPERVISOR, 'sh', ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    createInterface(child.stdout).on('line', (line) => {
      const pid = /^pid (\d+)$/.exec(line);
      if (pid !== null) this.#pid = Number(pid[1]);
    });
    const giveUpAt = Date.now() + START_TIMEOUT;
    await until('memcached listens', () => {
      if (Date.now() > giveUpAt) throw new Error(`memcached does not listen: ${command.join(' ')}`);
      return this.#pid > 0 && this.#accepts();
    });
  }

  /** Kills the server. */
  async crash(): Promise<void> {
    if (this.#child === undefined) return;
    const closed = once(this.#child, 'close');
    this.resume();
    this.#child.stdin?.end();
    await closed;
    this.#child = undefined;
    this.#pid = 0;
  }

  /** The server keeps its connections and answers nothing. */
  hang(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  /** Sends a command with a connection of its own; resolves with the reply up to a line that matches `end`. */
  async command(text: string, end = /^(?:END|OK|STORED|DELETED|NOT_FOUND|\d+ *|RESET)\r\n$/m): Promise<string> {
    const socket = this.#connect();
    let reply = '';
    try {
      socket.setEncoding('latin1').write(text, 'latin1');
      for await (const chunk of socket) {
        reply += String(chunk);
        if (end.test(reply)) break;
      }
    } finally {
      socket.destroy();
    }
    return reply;
  }

  /** The value of a key, as it is stored; undefined when it is absent. */
  async value(key: string): Promise<string | undefined> {
    return /^VALUE [^\r]*\r\n([^\r]*)\r\n/.exec(await this.command(`get ${key}\r\n`))?.[1];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #accepts(): Promise<boolean> {
    const socket = this.#connect();
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  #connect() {
    if (this.address.startsWith('/')) return connect(this.address);
    const [host, port] = this.address.split(':');
    return connect(Number(port), host);
  }
}
