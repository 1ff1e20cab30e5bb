import {
  block,
  continuation,
  data,
  frame,
  headers,
  hello,
  inserted,
  indexed,
  ping,
  priority,
  request,
  rstStream,
  settings,
  windowUpdate,
} from '../frames';

const MANY = 20_000;

function times(count: number, make: (at: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
}

function streamOf(at: number): number {
  return 2 * at + 1;
}

/** What attackers send, by its description. The server must limit its cost or be able to bear it. */
export const FLOODS: Readonly<Record<string, Buffer>> = {
  'PING frames': times(MANY, () => ping()),
  'SETTINGS frames': times(MANY, () => settings()),
  'PRIORITY frames': times(MANY, (at) => priority(streamOf(at), 0)),
  'frames of an unknown type': times(MANY, () => frame(0xfa, 0, 0)),
  'WINDOW_UPDATE frames of 1': times(MANY, () => windowUpdate(0, 1)),
  'empty DATA frames': Buffer.concat([headers(1, request('/keep')), times(MANY, () => data(1, ''))]),
  'DATA frames of one byte': Buffer.concat([headers(1, request('/keep')), times(MANY, () => data(1, 'x'))]),
  'requests that are reset at once': times(MANY, (at) =>
    Buffer.concat([headers(streamOf(at), request('/hold'), { endStream: true }), rstStream(streamOf(at))]),
  ),
  'malformed requests': times(MANY, (at) => headers(streamOf(at), request(''), { endStream: true })),
  'CONTINUATION frames': Buffer.concat([
    headers(1, request(), { endHeaders: false }),
    times(MANY, (at) => continuation(1, block([['x', 'y'.repeat(20)]]), at === MANY - 1)),
  ]),
  'references to a header of 4,000 bytes': headers(
    1,
    Buffer.concat([request(), inserted(['x', 'y'.repeat(4_000)]), times(10_000, () => indexed(62))]),
    { endStream: true },
  ),
};

/** The flood after a regular beginning of the connection. */
export function floodBytes(flood: Buffer): Buffer {
  return Buffer.concat([hello(), flood]);
}
