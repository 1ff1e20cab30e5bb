import { type Socket, createServer } from 'node:net';
import { LocalServer } from './local-server';

/**
 * A reply in the Redis protocol: an integer, a text, nothing, a list, an error whose message begins with its code, or
 * the bytes of what may be none.
 */
export type Reply = number | string | null | Error | Buffer | readonly Reply[];

/** Answers a command, whose name is in lower case. */
type Answer = (name: string, args: readonly string[], client: Socket) => Reply | Promise<Reply>;

/** A server that speaks the Redis protocol, for replies that a real one gives only in rare moments, or with a lie. */
export class CommandServer extends LocalServer {
  constructor(answer: Answer) {
    super(
      createServer((client) => {
        let unread = '';
        let written = Promise.resolve();
        client.setEncoding('latin1').on('data', (text: string) => {
          unread += text;
          for (let command = readCommand(unread); command !== undefined; command = readCommand(unread)) {
            unread = unread.slice(command.length);
            const [name = '', ...args] = command.words;
            const reply = answer(name.toLowerCase(), args, client);
            written = written.then(async () => void client.write(bytesOf(await reply)));
          }
        });
      }),
    );
  }

  static start(answer: Answer): Promise<CommandServer> {
    return new CommandServer(answer).listen();
  }

  /** Closes the connections of all clients. */
  cut(): void {
    for (const client of this.sockets) client.destroy();
  }
}

/** One of many addresses of this machine. @param index from 0 on */
export function loopback(index: number): string {
  return `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`;
}

function bytesOf(reply: Reply): Buffer {
  return Buffer.isBuffer(reply) ? reply : Buffer.from(encode(reply));
}

export function encode(reply: Reply): string {
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if (reply === null) return '$-1\r\n';
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  return `*${reply.length}\r\n${reply.map((each: Reply) => encode(each)).join('')}`;
}

/** The first command of a text, a list of its words, and its length; undefined when it is incomplete. */
function readCommand(text: string): { readonly words: readonly string[]; readonly length: number } | undefined {
  const count = /^\*(\d+)\r\n/.exec(text);
  if (count === null) return undefined;
  const words: string[] = [];
  let at = count[0].length;
  for (let index = 0; index < Number(count[1]); index += 1) {
    const header = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16));
    if (header === null) return undefined;
    const start = at + header[0].length;
    at = start + Number(header[1]) + 2;
    if (text.length < at) return undefined;
    words.push(text.slice(start, at - 2));
  }
  return { words, length: at };
}
