import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { join } from 'node:path';
import { Daemon } from './daemon';
import { freePorts } from './free-ports';

interface MemcachedOptions {
  /** Arguments in addition to the address, for example `['-M']`. */
  readonly args?: readonly string[];
  /** Listens on a Unix socket instead of a port. */
  readonly onSocket?: boolean;
}

/** A real memcached on a free port of 127.0.0.1 or on a Unix socket. */
export class MemcachedProcess extends Daemon {
  /** `host:port`, or the path of the socket. */
  readonly address: string;
  readonly #args: readonly string[];

  private constructor(port: number, { args = [], onSocket = false }: MemcachedOptions) {
    super();
    const socket = join(this.folder, 'memcached.sock');
    this.address = onSocket ? socket : `127.0.0.1:${port}`;
    this.#args = [...(onSocket ? ['-s', socket] : ['-l', '127.0.0.1', '-p', String(port), '-U', '0']), ...args];
  }

  static async start(options: MemcachedOptions = {}): Promise<MemcachedProcess> {
    const [port] = await freePorts(1);
    return new MemcachedProcess(port, options).started();
  }

  async run(): Promise<void> {
    this.launch('memcached', '-u', 'root', ...this.#args);
    await this.until('memcached listens', () => this.pid > 0 && this.#accepts());
  }

  /** The server keeps its connections and answers nothing. */
  hang(): void {
    this.signal('SIGSTOP');
  }

  resume(): void {
    this.signal('SIGCONT');
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

  #connect(): Socket {
    if (this.address.startsWith('/')) return connect(this.address);
    const [host, port] = this.address.split(':');
    return connect(Number(port), host);
  }
}
