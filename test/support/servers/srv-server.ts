import { type Socket, createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';

export interface SrvAnswer {
  readonly name: string;
  readonly port: number;
}

const HEADER_BYTES = 12;
const SRV = 33;
const INTERNET = 1;
/** A pointer to the name of the question, which follows the header. */
const QUESTION_NAME = 0xc000 | HEADER_BYTES;
const SERVER_FAILURE = 2;

/** A name server on a free port of 127.0.0.1 that answers every question with the same SRV records. */
export class SrvServer implements AsyncDisposable {
  records: readonly SrvAnswer[] = [];
  fails = false;
  isMute = false;
  queries = 0;
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (query, { address, port }) => {
      this.queries += 1;
      if (!this.isMute) socket.send(this.#answer(query), port, address);
    });
  }

  static async start(): Promise<SrvServer> {
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new SrvServer(socket);
  }

  /** Looks up a record with this server, which answers within this many milliseconds. */
  readonly lookUp = (record: string, timeout = 5_000): Promise<readonly SrvAnswer[]> => {
    const resolver = new Resolver({ timeout, tries: 2 });
    resolver.setServers([`127.0.0.1:${this.#socket.address().port}`]);
    return resolver.resolveSrv(record);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  /** RFC 1035, section 4; RFC 2782 for the records. */
  #answer(query: Buffer): Buffer {
    const end = query.indexOf(0, HEADER_BYTES) + 5;
    const header = Buffer.from(query.subarray(0, HEADER_BYTES));
    const answers = this.fails ? [] : this.records;
    header.writeUInt16BE(0x8180 | (this.fails ? SERVER_FAILURE : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    header.writeUInt32BE(0, 8);
    return Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...answers.map(recordOf)]);
  }
}

function recordOf({ name, port }: SrvAnswer): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(String.fromCharCode(label.length) + label, 'latin1'));
  const target = Buffer.concat([...labels, Buffer.of(0)]);
  const head = Buffer.alloc(18);
  head.writeUInt16BE(QUESTION_NAME, 0);
  head.writeUInt16BE(SRV, 2);
  head.writeUInt16BE(INTERNET, 4);
  head.writeUInt16BE(6 + target.length, 10);
  head.writeUInt16BE(port, 16);
  return Buffer.concat([head, target]);
}
