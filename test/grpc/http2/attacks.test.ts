import { DEFAULT_LIMITS } from '../../../src/grpc/http2/limits/limits';
import { ErrorCode, Flag, FrameType, PREFACE, Setting } from '../../../src/grpc/http2/frames/protocol';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import {
  REQUEST,
  block,
  bytesOf,
  continuation,
  data,
  endedOf,
  fieldsOf,
  frame,
  get,
  goawaysOf,
  headers,
  hello,
  indexed,
  inserted,
  literal,
  ping,
  priority,
  request,
  resetsOf,
  rstStream,
  settings,
  settingsAck,
  sizeUpdate,
  windowUpdate,
} from './frames';
import { MemoryPeer } from './memory-peer';

const { ENHANCE_YOUR_CALM, REFUSED_STREAM, CANCEL } = ErrorCode;

function times(count: number, make: (at: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
}
function connected(limits = {}): MemoryPeer {
  return new MemoryPeer(limits).send(hello());
}
function stream(at: number): number {
  return 2 * at + 1;
}

function expectCalm(peer: MemoryPeer, as: Rejection): void {
  expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: ENHANCE_YOUR_CALM })]);
  expect(peer.rejections.filter((kind) => kind === as)).toHaveLength(1);
  expect(peer.rejections.at(-1)).toBe(as);
  expect(peer.transport.isEnded).toBe(true);
  expect(peer.internalErrors).toEqual([]);
}

function expectAlive(peer: MemoryPeer): void {
  expect(goawaysOf(peer.frames)).toEqual([]);
  expect(peer.transport.isDestroyed).toBe(false);
  peer.send(ping('alive...'));
  expect(peer.frames.at(-1)?.payload.toString()).toBe('alive...');
}

describe('a rapid reset (CVE-2023-44487)', () => {
  function openAndReset(at: number) {
    return Buffer.concat([get(stream(at), '/hold'), rstStream(stream(at))]);
  }

  it('within one chunk starts no work, and ends the connection once the token bucket is empty', () => {
    const peer = connected();
    peer.send(times(10_000, openAndReset));
    expectAlive(peer);
    peer.send(times(1, (at) => openAndReset(10_000 + at)));

    expect(peer.application.runs).toBe(0);
    expectCalm(peer, 'rapid_reset');
  });

  it('after the work has begun does not free the slot until the work has ended', () => {
    const peer = connected();
    for (let at = 0; at < 3_000 && !peer.transport.isEnded; at += 1) {
      peer.send(get(stream(at), '/hold'));
      peer.send(rstStream(stream(at)));
    }

    expect(peer.application.mostRunning).toBe(DEFAULT_LIMITS.maxConcurrentStreams);
    expectCalm(peer, 'faults');
    expect(new Set(peer.rejections)).toEqual(new Set(['streams', 'faults']));
  });

  it('is not detected in a proxy that resets every request that is answered late', () => {
    const peer = connected();
    // 5,000 calls a second for 5 seconds, each reset 20 ms after its request, each answered too late.
    for (let turn = 0; turn < 250; turn += 1) {
      const late = peer.application.held.splice(0);
      peer.send(Buffer.concat(late.map(({ id }) => rstStream(id, ErrorCode.INTERNAL_ERROR))));
      for (const held of late) peer.application.finish(held, 'late');
      const first = turn * 100;
      peer.send(times(100, (at) => get(stream(first + at), '/hold')));
      peer.wait(20, 20);
    }

    expect(peer.rejections).toEqual([]);
    expectAlive(peer);
  });
});

describe('frames that provoke RST_STREAM from the server (CVE-2025-8671)', () => {
  const primitives: [title: string, make: (id: number) => Buffer][] = [
    ['a WINDOW_UPDATE of 0', (id) => Buffer.concat([get(id, '/hold'), windowUpdate(id, 0)])],
    [
      'a WINDOW_UPDATE that overflows the window',
      (id) => Buffer.concat([get(id, '/hold'), windowUpdate(id, 2 ** 31 - 1)]),
    ],
    ['DATA after END_STREAM', (id) => Buffer.concat([get(id, '/hold'), data(id, 'x')])],
    ['HEADERS after END_STREAM', (id) => Buffer.concat([get(id, '/hold'), headers(id)])],
    [
      'PRIORITY of a wrong length',
      (id) => Buffer.concat([get(id, '/hold'), frame(FrameType.PRIORITY, 0, id, bytesOf(0))]),
    ],
    ['a stream that depends on itself', (id) => Buffer.concat([get(id, '/hold'), priority(id, id)])],
    [
      'a wrong content-length',
      (id) => Buffer.concat([headers(id, request('/hold', ['content-length', '1'])), data(id, 'xx')]),
    ],
    ['a malformed request', (id) => get(id, '')],
  ];

  it.each(primitives)('end the connection when there are too many: %s', (_title, make) => {
    const peer = connected();
    for (let at = 0; at < 10_000 && !peer.transport.isEnded; at += 1) peer.send(make(stream(at)));

    expect(resetsOf(peer.frames)).toHaveLength(DEFAULT_LIMITS.faults.burst + 1);
    expect(peer.application.mostRunning).toBeLessThanOrEqual(DEFAULT_LIMITS.maxConcurrentStreams);
    expectCalm(peer, 'faults');
  });

  it.each(primitives)('do not free the slot while work for the stream is in progress: %s', (_title, make) => {
    const peer = connected({ maxConcurrentStreams: 10 });
    for (let at = 0; at < 40; at += 1) {
      peer.send(get(stream(2 * at), '/hold'));
      peer.send(make(stream(2 * at + 1)));
    }

    expect(peer.application.mostRunning).toBeLessThanOrEqual(10);
    expect(resetsOf(peer.frames)).toContainEqual([expect.any(Number), REFUSED_STREAM]);
  });

  it('include streams over the limit, which are rejected and start no work', () => {
    const peer = connected({ maxConcurrentStreams: 2 });
    peer.send(times(3, (at) => get(stream(at), '/hold')));

    expect(resetsOf(peer.frames)).toEqual([[5, REFUSED_STREAM]]);
    expect(peer.application.runs).toBe(2);
    peer.application.finish(peer.application.held.pop()!, 'done');
    peer.send(get(7));
    expect(endedOf(peer.frames)).toEqual([3, 7]);
  });

  it('are not counted as faults for streams over the limit, until the client has acknowledged the limit', () => {
    const peer = new MemoryPeer({ maxConcurrentStreams: 1 });
    peer.send(Buffer.concat([PREFACE, settings(), times(500, (at) => get(stream(at), '/hold'))]));

    expect(resetsOf(peer.frames)).toHaveLength(499);
    expectAlive(peer);
  });
});

describe('a header block', () => {
  const begun = headers(1, bytesOf(), { endHeaders: false, endStream: true });

  it('may consist of nine frames', () => {
    const peer = connected().send(
      Buffer.concat([begun, times(7, () => continuation(1, bytesOf())), continuation(1, request(), true)]),
    );

    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it.each([
    ['with more than eight CONTINUATION frames', times(9, () => continuation(1, literal(['x', 'y'])))],
    ['with more than eight empty CONTINUATION frames', times(9, () => continuation(1, bytesOf()))],
    ['of more than 32 KiB', times(3, () => continuation(1, Buffer.alloc(11_000)))],
  ])('%s ends the connection', (_title, frames) => {
    expectCalm(connected().send(Buffer.concat([begun, frames])), 'header_block');
  });

  it('on a stream that is rejected has the same limits', () => {
    const peer = connected({ maxConcurrentStreams: 0 });
    peer.send(Buffer.concat([begun, times(9, () => continuation(1, bytesOf()))]));

    expectCalm(peer, 'header_block');
  });

  it('that is not complete after ten seconds ends the connection, however slowly it arrives', () => {
    const peer = connected().send(begun);
    for (let second = 0; second < 9; second += 1) peer.wait(1_000).send(bytesOf(0).subarray(0, second % 2));
    expectAlive(new MemoryPeer().send(hello()));
    peer.wait(1_100);

    expectCalm(peer, 'header_timeout');
  });

  it('interrupted at any byte by the end of the connection leaves no state behind', () => {
    const bytes = Buffer.concat([
      hello(),
      headers(1, request('/hold').subarray(0, 20), { endHeaders: false }),
      continuation(1, request('/hold').subarray(20), true),
    ]);
    for (let length = 0; length <= bytes.length; length += 1) {
      const peer = new MemoryPeer().send(bytes.subarray(0, length));
      peer.connection.transportClosed();
      peer.wait(60_000, 10_000);
      expect(peer.internalErrors).toEqual([]);
      expect(peer.application.opened).toBe(peer.application.cancelled);
    }
  });
});

describe('a header list', () => {
  function referenced(count: number): Buffer {
    return Buffer.alloc(count, indexed(62));
  }

  it.each([
    [
      'one large entry referenced repeatedly (CVE-2016-6581)',
      Buffer.concat([request(), inserted(['x', 'y'.repeat(4_000)]), referenced(1_000)]),
    ],
    [
      'one tiny entry referenced repeatedly (CVE-2026-49975)',
      Buffer.concat([request(), inserted(['a', '']), referenced(16_000)]),
    ],
    ['many cookie fields', Buffer.concat([request(), inserted(['cookie', 'a']), referenced(200)])],
    ['many host fields', Buffer.concat([request(), inserted(['host', 'weir']), referenced(200)])],
    ['many fields with an empty name (CVE-2019-9516)', Buffer.concat([request(), times(200, () => literal(['', '']))])],
    ['101 fields', block([...REQUEST, ...Array.from({ length: 97 }, () => ['x', 'y'] as const)])],
    ['a name longer than the limit', Buffer.concat([request(), literal(['x'.repeat(16_500), ''])])],
  ])('over a limit is answered with 431 and not passed to the application: %s', (_title, fields) => {
    const peer = connected();
    const pieces = [0, 1, 2].map((at) => fields.subarray(at * 8_000, at === 2 ? undefined : (at + 1) * 8_000));
    peer.send(
      Buffer.concat([
        headers(1, pieces[0], { endStream: true, endHeaders: false }),
        continuation(1, pieces[1]!),
        continuation(1, pieces[2]!, true),
      ]),
    );

    const [answer] = peer.frames.filter(({ type, stream: id }) => type === FrameType.HEADERS && id === 1);
    expect(fieldsOf(answer!.payload)).toEqual({ ':status': '431' });
    expect(peer.rejections).toEqual(['header_list']);
    expect(peer.application.opened).toBe(0);
    expectAlive(peer);
  });

  it('over a limit still updates the dynamic table', () => {
    const peer = connected();
    const over = Buffer.concat([
      request(),
      inserted(['te', 'trailers']),
      times(200, () => literal(['x', 'y'])),
      inserted(['x-more', 'z']),
    ]);
    peer.send(headers(1, over, { endStream: true }));
    peer.send(headers(3, Buffer.concat([request(), indexed(63), indexed(62)]), { endStream: true }));
    peer.send(headers(5, Buffer.concat([request(), indexed(64)]), { endStream: true }));

    expect(endedOf(peer.frames)).toEqual([1, 3]);
    expect(peer.rejections).toEqual(['header_list', 'compression_error']);
  });

  it('over a limit in trailers resets the stream', () => {
    const peer = connected().send(
      Buffer.concat([
        headers(1),
        headers(
          1,
          times(101, () => literal(['x', 'y'])),
          { endStream: true },
        ),
      ]),
    );

    expect(resetsOf(peer.frames)).toEqual([[1, ENHANCE_YOUR_CALM]]);
    expectAlive(peer);
  });
});

describe('a flood', () => {
  it('of SETTINGS ends the connection (CVE-2019-9515)', () => {
    const peer = connected();
    peer.send(times(99, () => settings()));
    expectAlive(peer);
    peer.send(times(1, () => settings()));

    expectCalm(peer, 'settings_flood');
  });

  it('of SETTINGS is not detected in one frame per second', () => {
    const peer = connected().send(times(99, () => settings()));
    for (let second = 0; second < 60; second += 1) peer.wait(1_000, 1_000).send(settings());

    expectAlive(peer);
  });

  it('of settings in one frame ends the connection (CVE-2020-11080)', () => {
    expectCalm(
      connected().send(settings(...Array.from({ length: 2_400 }, () => [Setting.HEADER_TABLE_SIZE, 0] as const))),
      'settings_flood',
    );
  });

  it('of window changes with a thousand open streams ends the connection', () => {
    const peer = connected().send(times(1_000, (at) => get(stream(at), '/hold')));
    peer.send(times(1_000, (at) => settings([Setting.INITIAL_WINDOW_SIZE, at % 2 === 0 ? 0 : 2 ** 31 - 1])));

    expectCalm(peer, 'settings_flood');
  });

  it('of PINGs ends the connection with the debug data that gRPC clients expect (CVE-2019-9512)', () => {
    const peer = connected().send(times(5, () => ping()));

    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: 0, code: ENHANCE_YOUR_CALM, debug: 'too_many_pings' }]);
    expect(peer.frames.filter(({ type, flags }) => type === FrameType.PING && flags === Flag.ACK)).toHaveLength(3);
    expect(peer.rejections).toEqual(['ping_flood']);
  });

  it('is not detected in the traffic of grpc-go: a PING and a WINDOW_UPDATE after each call', () => {
    const peer = connected();
    for (let at = 0; at < 20_000; at += 1) peer.send(Buffer.concat([get(stream(at)), windowUpdate(0, 4), ping()]));

    expect(endedOf(peer.frames)).toHaveLength(20_000);
    expect(peer.rejections).toEqual([]);
  });

  it('of PINGs is not detected in a proxy that sends one every ten seconds', () => {
    const peer = connected();
    for (let at = 0; at < 100; at += 1) peer.wait(10_000, 1_000).send(ping());

    expect(goawaysOf(peer.frames)).toEqual([]);
  });

  it.each([
    ['the connection', 0],
    ['a closed stream', 1],
  ])('of WINDOW_UPDATEs on %s ends the connection', (_title, id) => {
    const peer = connected().send(get(1));
    // 5, plus twice the sum of one for the stream and ten for each of its two DATA frames.
    peer.send(times(47, () => windowUpdate(id, 1)));
    expectAlive(peer);
    peer.send(windowUpdate(id, 1));

    expectCalm(peer, 'window_update_flood');
  });

  it('of empty DATA frames ends the connection (CVE-2019-9518)', () => {
    const peer = connected()
      .send(headers(1))
      .send(times(200, () => data(1)));
    expectAlive(peer);
    peer.send(data(1, '', false, 3));

    expectCalm(peer, 'faults');
  });

  it('of tiny DATA frames ends the connection', () => {
    const peer = connected()
      .send(headers(1))
      .send(times(1_028, () => data(1, 'x')));
    expectAlive(peer);
    peer.send(data(1, 'x'));

    expectCalm(peer, 'data_dribble');
  });

  it('of tiny DATA frames is not detected in a stream of small messages', () => {
    const peer = connected().send(headers(1, request('/messages')));
    for (let at = 0; at < 10_000; at += 1) peer.send(data(1, 'twenty bytes each..'));

    expectAlive(peer);
  });

  it('of PRIORITY frames ends the connection (CVE-2019-9513)', () => {
    const peer = connected()
      .send(get(1))
      .send(times(301, () => priority(3, 5)));
    expectAlive(peer);
    peer.send(priority(3, 5));

    expectCalm(peer, 'faults');
  });

  it('of unknown frames ends the connection', () => {
    expectCalm(connected().send(times(301, () => frame(0xfa, 0, 0))), 'faults');
  });

  it('of unknown settings ends the connection', () => {
    expectCalm(
      connected().send(times(10, () => settings(...Array.from({ length: 32 }, () => [0xfa, 1] as const)))),
      'faults',
    );
  });

  it('of unsolicited acknowledgements of SETTINGS ends the connection', () => {
    expectCalm(connected().send(times(201, () => settingsAck)), 'faults');
  });

  it('of DATA on streams that are no longer remembered ends the connection', () => {
    const peer = connected().send(times(200, (at) => get(stream(at))));
    peer.send(times(501, () => data(1)));

    expectCalm(peer, 'faults');
  });

  it('of table size updates ends the connection', () => {
    const peer = connected().send(headers(1, Buffer.concat([times(1_000, () => sizeUpdate(0)), request()])));

    expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: ErrorCode.COMPRESSION_ERROR })]);
  });
});

describe('a peer that does not read our output', () => {
  it('is not read and starts no work, and is disconnected after ten seconds', () => {
    const peer = connected();
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(40, (at) => get(stream(at), '/big/60000')));

    expect(peer.transport.isPaused).toBe(true);
    expect(peer.application.runs).toBeLessThan(25);
    expect(peer.transport.writableLength).toBeLessThan(DEFAULT_LIMITS.softOutputBytes + 200_000);
    peer.wait(9_900);
    expect(peer.transport.isDestroyed).toBe(false);
    peer.wait(200);
    expect(peer.transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['slow_reader']);
    expect(peer.application.cancelled).toBeGreaterThan(0);
  });

  it('is served again when it resumes reading', () => {
    const peer = connected();
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(40, (at) => get(stream(at), '/big/60000')));
    peer.wait(9_000);
    while (peer.transport.isPaused) peer.readAll();
    peer.transport.isRead = true;
    peer.readAll();

    expect(endedOf(peer.frames)).toHaveLength(40);
    peer.wait(20_000);
    expectAlive(peer);
  });

  it('stays connected as long as it reads slowly', () => {
    const peer = connected();
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(40, (at) => get(stream(at), '/big/60000')));
    for (let round = 0; round < 6; round += 1) {
      peer.wait(8_000);
      peer.transport.writableLength -= 10_000;
    }

    expect(peer.transport.isDestroyed).toBe(false);
  });

  it('stays connected as long as it reads slowly while calls are answered', () => {
    const peer = connected();
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(6, (at) => get(stream(at), '/hold')));
    peer.send(times(40, (at) => get(stream(6 + at), '/big/60000')));
    for (const held of peer.application.held.splice(0)) {
      peer.wait(8_000);
      peer.transport.writableLength -= 10_000;
      peer.application.finish(held, 'x'.repeat(20_000));
      peer.endTurns();
    }

    expect(peer.transport.isDestroyed).toBe(false);
  });

  it('has its calls told that they wait', () => {
    const peer = connected();
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(40, (at) => get(stream(at), '/big/60000')));

    expect(peer.application.told).toBe(40 - peer.application.runs);
  });

  it('is disconnected when the responses of running calls exceed the hard limit', () => {
    const peer = connected({ maxHeldBytes: 0 });
    peer.send(
      Buffer.concat([settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535)]),
    );
    peer.transport.isRead = false;
    peer.send(times(100, (at) => get(stream(at), '/hold')));
    for (const held of peer.application.held.splice(0)) {
      peer.application.finish(held, 'x'.repeat(60_000));
      peer.endTurns();
    }

    expect(peer.transport.isDestroyed).toBe(true);
    expect(peer.transport.writableLength).toBeLessThan(DEFAULT_LIMITS.hardOutputBytes + 100_000);
    expect(peer.rejections).toEqual(['slow_reader']);
  });

  it('is disconnected when too many answers to its control frames are waiting', () => {
    const peer = connected({ pingStrikes: 1e9 });
    peer.transport.isRead = false;
    peer.send(times(1_001, () => ping()));
    expectAlive(peer);
    peer.send(times(1_001, () => ping()));

    expectCalm(peer, 'control_flood');
  });

  it('is not disconnected because the socket accepts output in a later turn, as with TLS', () => {
    const peer = connected({ pingStrikes: 1e9 });
    peer.transport.isLate = true;
    for (let count = 0; count < 2_000; count += 1) peer.send(times(3, () => ping()));

    expect(peer.rejections).toEqual([]);
    expectAlive(peer);
  });

  it('has its stream reset when its window stays closed for thirty seconds, even if it grows by single bytes', () => {
    const peer = connected();
    peer.send(settings([Setting.INITIAL_WINDOW_SIZE, 0]));
    peer.send(get(1));
    for (let second = 0; second < 29; second += 1) {
      peer.wait(1_000);
      if (second < 3) peer.send(windowUpdate(1, 1));
    }
    expect(resetsOf(peer.frames)).toEqual([]);
    peer.wait(1_100);

    expect(resetsOf(peer.frames)).toEqual([[1, CANCEL]]);
    expect(peer.rejections).toEqual(['response_timeout']);
    expectAlive(peer);
  });

  describe('whose output follows long after its last input', () => {
    /** The stream of a call that has been worked on for 100 seconds. */
    function heldCall(peer: MemoryPeer) {
      peer.send(get(1, '/hold')).wait(100_000);
      return peer.application.held[0]!;
    }

    it('has as much time to open the window of the stream', () => {
      const peer = connected().send(settings([Setting.INITIAL_WINDOW_SIZE, 0]));
      peer.application.finish(heldCall(peer), 'late');
      peer.endTurns().wait(29_000);
      expect(resetsOf(peer.frames)).toEqual([]);
      peer.wait(2_000);
      expect(resetsOf(peer.frames)).toEqual([[1, CANCEL]]);
    });

    it('has as much time to read', () => {
      const peer = connected().send(settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]));
      peer.send(windowUpdate(0, 2 ** 31 - 1 - 65_535));
      const held = heldCall(peer);
      peer.transport.isRead = false;
      peer.application.finish(held, 'x'.repeat(2 * DEFAULT_LIMITS.softOutputBytes));
      peer.endTurns().wait(9_000);
      expect(peer.transport.isDestroyed).toBe(false);
      peer.wait(2_000);
      expect([peer.transport.isDestroyed, peer.rejections]).toEqual([true, ['slow_reader']]);
    });
  });

  it('is disconnected when its windows hold back too much output', () => {
    const peer = connected();
    peer.send(settings([Setting.INITIAL_WINDOW_SIZE, 0]));
    peer.send(times(300, (at) => get(stream(at), '/big/16000')));

    expect(peer.transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['slow_reader']);
  });
});

describe('a slow peer', () => {
  it.each([
    ['sends nothing', bytesOf()],
    ['stops inside the preface', PREFACE.subarray(0, 12)],
    ['stops after the preface', PREFACE],
    ['stops inside SETTINGS', Buffer.concat([PREFACE, settings([1, 1]).subarray(0, 12)])],
  ])('is disconnected after ten seconds when it %s', (_title, bytes) => {
    const peer = new MemoryPeer().send(bytes).wait(9_900);
    expect(goawaysOf(peer.frames)).toEqual([]);
    peer.wait(200);

    expect(goawaysOf(peer.frames)).toHaveLength(1);
    expect(peer.rejections).toEqual(['preface_timeout']);
    peer.wait(1_100);
    expect(peer.transport.isDestroyed).toBe(true);
  });

  it('is disconnected after ten seconds without an acknowledgement of our SETTINGS', () => {
    const peer = new MemoryPeer().send(Buffer.concat([PREFACE, settings()])).wait(10_100);

    expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: ErrorCode.SETTINGS_TIMEOUT })]);
    expect(peer.rejections).toEqual(['settings_timeout']);
  });

  it('receives a PING after five minutes of silence, and is disconnected twenty seconds later', () => {
    const peer = connected().wait(300_200, 100);
    expect(peer.frames.at(-1)).toMatchObject({ type: FrameType.PING, flags: 0 });
    peer.wait(20_200, 100);

    expect(peer.transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['keepalive_timeout']);
  });

  it('stays connected when it answers the PINGs', () => {
    const peer = connected();
    for (let round = 0; round < 3; round += 1) {
      peer.wait(300_200, 100);
      peer.send(ping(peer.frames.at(-1)!.payload.toString('latin1'), Flag.ACK));
    }
    peer.wait(60_000, 100);

    expectAlive(peer);
  });
});

describe('the memory of a connection', () => {
  it('for incomplete requests is limited per connection', () => {
    const peer = connected({ maxHeldBytesPerConnection: 100_000 });
    peer.send(headers(1, request('/keep'))).send(headers(3, request('/keep')));
    for (let at = 0; at < 4; at += 1) peer.send(data(1, Buffer.alloc(16_000)));
    for (let at = 0; at < 3; at += 1) peer.send(data(3, Buffer.alloc(16_000)));

    expect(resetsOf(peer.frames)).toEqual([[3, ENHANCE_YOUR_CALM]]);
    expect(peer.rejections).toEqual(['request_memory']);
    expect(peer.context.heldBytes.total).toBe(64_000);
    peer.connection.transportClosed();
    expect(peer.context.heldBytes.total).toBe(0);
  });

  it('for incomplete requests is limited per server', () => {
    const peer = connected({ maxHeldBytes: 20_000 });
    peer
      .send(headers(1, request('/keep')))
      .send(data(1, Buffer.alloc(16_000)))
      .send(data(1, Buffer.alloc(16_000)));

    expect(peer.rejections).toEqual(['request_memory']);
    expect(peer.context.heldBytes.total).toBe(0);
  });

  it('does not grow with the streams that have been closed, and its window does not shrink', () => {
    const peer = connected().send(windowUpdate(0, 2 ** 30));
    // Rejected, reset, late and padded DATA: every way in which a window could leak.
    for (let at = 0; at < 20_000; at += 1) {
      const id = stream(at);
      peer.send(Buffer.concat([headers(id, request('/early')), data(id, 'late', true, 20)]));
    }
    const id = stream(20_000);
    peer.send(headers(id, request('/keep')));
    for (let at = 0; at < 128; at += 1) peer.send(data(id, Buffer.alloc(16_384), at === 127));

    expect(peer.application.bodies.at(-1)).toHaveLength(128 * 16_384);
    expect(peer.rejections).toEqual([]);
    expectAlive(peer);
  });
});

describe('a connection that the server has ended', () => {
  const everything = Buffer.concat([
    get(3),
    data(3, 'x'),
    priority(3, 5),
    rstStream(1),
    settings([1, 0]),
    frame(FrameType.PUSH_PROMISE, 4, 1),
    ping(),
    frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8)),
    windowUpdate(0, 0),
    continuation(1, block()),
    frame(0xfa, 0, 0),
  ]);

  it('ignores all further input, in the same chunk and later', () => {
    const peer = connected().send(Buffer.concat([get(1), data(2, 'x'), everything]));
    peer.send(everything);

    expect(goawaysOf(peer.frames)).toHaveLength(1);
    expect(peer.application.opened).toBe(1);
    expect(peer.application.cancelled).toBe(1);
    expect(peer.rejections).toEqual(['protocol_error']);
  });

  it('because of a limit ignores the rest of the same chunk', () => {
    const peer = connected().send(Buffer.concat([times(4, () => ping()), get(1), everything]));

    expect(peer.application.opened).toBe(0);
    expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ debug: 'too_many_pings' })]);
    expect(peer.rejections).toEqual(['ping_flood']);
  });

  it('is read for one more second, so that its last frames arrive, and then destroyed', () => {
    const peer = connected().send(data(2, 'x')).wait(900);
    expect(peer.transport.isEnded).toBe(true);
    expect(peer.transport.isDestroyed).toBe(false);
    peer.wait(200);

    expect(peer.transport.isDestroyed).toBe(true);
  });
});
