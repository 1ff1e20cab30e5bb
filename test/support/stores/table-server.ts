import { type Socket, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { LARGEST_COUNT } from '../../../src/counting/operation';
import { LocalServer } from '../servers/local-server';
import type { Command } from './table-store';

/** A server with a table of counters, for {@link TableStore}. */
export class TableServer extends LocalServer {
  readonly #table = new Map<string, { count: number; until: number }>();
  /** It reads commands, and answers none of them until it does not hang any more. */
  #hung: (() => void)[] | undefined;

  constructor() {
    super(createServer((socket) => createInterface(socket).on('line', (line) => this.#received(line, socket))));
  }

  static start(): Promise<TableServer> {
    return new TableServer().listen();
  }

  hang(): void {
    this.#hung = [];
  }

  goOn(): void {
    const hung = this.#hung ?? [];
    this.#hung = undefined;
    for (const answer of hung) answer();
  }

  #received(line: string, socket: Socket): void {
    const answer = () => socket.write(`${JSON.stringify(this.#execute(JSON.parse(line) as Command))}\n`);
    if (this.#hung === undefined) answer();
    else this.#hung.push(answer);
  }

  #execute(command: Command): unknown {
    if (command[0] === 'ping') return 'pong';
    if (command[0] === 'count') {
      const [, ...steps] = command;
      return steps.map(([key, hits, lifetime]) => this.#add(key, hits, lifetime));
    }
    const [, key, to, lifetime] = command;
    const present = this.#present(key);
    const timeToLive = present === undefined ? null : Math.ceil((present.until - Date.now()) / 1000);
    const before = { count: present?.count ?? 0, timeToLive };
    if (to === 'nothing') this.#table.delete(key);
    else if (to !== 'same') this.#table.set(key, { count: to, until: present?.until ?? Date.now() + lifetime * 1000 });
    return before;
  }

  #present(key: string) {
    const present = this.#table.get(key);
    return present !== undefined && present.until > Date.now() ? present : undefined;
  }

  #add(key: string, hits: number, lifetime: number): number {
    const present = this.#present(key) ?? { count: 0, until: Date.now() + lifetime * 1000 };
    if (hits <= 0 && present.count === 0) return 0;
    present.count = Math.min(LARGEST_COUNT, Math.max(0, present.count + hits));
    if (hits > 0) present.until = Math.max(present.until, Date.now() + lifetime * 1000);
    this.#table.set(key, present);
    return present.count;
  }
}
