import { ErrorCode, Flag, FrameType, PREFACE, Setting } from '../../../src/grpc/http2/protocol';
import { DEFAULT_LIMITS, LIMITS, type Rejection } from '../../../src/grpc/http2/limits';
import {
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
  streamOf,
  times,
  windowUpdate,
} from './frames';
import { MemoryPeer, connected } from './memory-peer';
import { ENHANCE_YOUR_CALM, REFUSED_STREAM, expectAlive, expectCalm } from './attacked-peer';

describe('a rapid reset (CVE-2023-44487)', () => {
  function openAndReset(at: number): Buffer {
    return Buffer.concat([get(streamOf(at), '/hold'), rstStream(streamOf(at))]);
  }

  it('within one chunk starts no work, and ends the connection once the token bucket is empty', () => {
    const peer = connected().send(times(10_000, openAndReset));
    expectAlive(peer);
    peer.send(openAndReset(10_000));

    expect(peer.application.runs).toBe(0);
    expectCalm(peer, 'rapid_reset');
  });

  it('after the work has begun does not free the slot until the work has ended', () => {
    const peer = connected();
    for (let at = 0; at < 3_000 && !peer.transport.isEnded; at += 1) {
      peer.send(get(streamOf(at), '/hold')).send(rstStream(streamOf(at)));
    }

    expect(peer.application.mostRunning).toBe(DEFAULT_LIMITS.maxConcurrentStreams);
    expectCalm(peer, 'faults');
    expect(new Set(peer.rejections)).toEqual(new Set(['streams', 'faults']));
  });

  it('is permitted once more for each response', () => {
    const peer = connected().send(times(9_999, openAndReset));
    for (let at = 10_000; at < 10_100; at += 2) peer.send(openAndReset(at)).send(get(streamOf(at + 1)));
    expect(peer.rejections).toEqual([]);
    expectCalm(peer.send(Buffer.concat([openAndReset(10_100), openAndReset(10_101)])), 'rapid_reset');
  });

  it('is not detected in a proxy that resets every request that is answered late', () => {
    const peer = connected();
    // 5,000 calls a second for 5 seconds, each reset 20 ms after its request, each answered too late.
    for (let turn = 0; turn < 250; turn += 1) {
      peer.send(
        Buffer.concat(peer.application.held.map(({ stream }) => rstStream(stream.id, ErrorCode.INTERNAL_ERROR))),
      );
      peer.finish(100, 'late');
      peer.send(times(100, (at) => get(streamOf(turn * 100 + at), '/hold'))).wait(20, 20);
    }

    expect(peer.rejections).toEqual([]);
    expectAlive(peer);
  });
});

describe('frames that provoke RST_STREAM from the server (CVE-2025-8671)', () => {
  const primitives: [title: string, make: (id: number) => Buffer[]][] = [
    ['a WINDOW_UPDATE of 0', (id) => [get(id, '/hold'), windowUpdate(id, 0)]],
    ['a WINDOW_UPDATE that overflows the window', (id) => [get(id, '/hold'), windowUpdate(id, 2 ** 31 - 1)]],
    ['DATA after END_STREAM', (id) => [get(id, '/hold'), data(id, 'x')]],
    ['HEADERS after END_STREAM', (id) => [get(id, '/hold'), headers(id)]],
    ['PRIORITY of a wrong length', (id) => [get(id, '/hold'), frame(FrameType.PRIORITY, 0, id, bytesOf(0))]],
    ['a stream that depends on itself', (id) => [get(id, '/hold'), priority(id, id)]],
    ['a wrong content-length', (id) => [headers(id, request('/hold', ['content-length', '1'])), data(id, 'xx')]],
    ['a malformed request', (id) => [get(id, '')]],
  ];

  it.each(primitives)('end the connection when there are too many, and free no slot in use: %s', (_title, make) => {
    const peer = connected();
    for (let at = 0; at < 10_000 && !peer.transport.isEnded; at += 1) peer.send(Buffer.concat(make(streamOf(at))));
    expect(resetsOf(peer.frames)).toHaveLength(LIMITS.faults.burst + 1);
    expectCalm(peer, 'faults');

    const busy = connected({ maxConcurrentStreams: 10 });
    for (let at = 0; at < 40; at += 1) {
      busy.send(get(streamOf(2 * at), '/hold')).send(Buffer.concat(make(streamOf(2 * at + 1))));
    }
    expect(busy.application.mostRunning).toBeLessThanOrEqual(10);
    expect(resetsOf(busy.frames)).toContainEqual([expect.any(Number), REFUSED_STREAM]);
  });

  it('are not counted as faults for streams over the limit, until the client has acknowledged the limit', () => {
    const peer = new MemoryPeer({ maxConcurrentStreams: 1 });
    peer.send(Buffer.concat([PREFACE, settings(), times(500, (at) => get(streamOf(at), '/hold'))]));
    expect([resetsOf(peer.frames).length, peer.application.runs]).toEqual([499, 1]);
    expectAlive(peer.finish());
    expect(endedOf(peer.send(get(1_001)).frames)).toEqual([1, 1_001]);
  });
});

describe('a header block', () => {
  const begun = headers(1, bytesOf(), { endHeaders: false, endStream: true });
  const empty = continuation(1, bytesOf());

  it('may consist of nine frames', () => {
    const peer = connected().send(Buffer.concat([begun, times(7, () => empty), continuation(1, request(), true)]));
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it.each([
    ['with more than eight CONTINUATION frames', {}, times(9, () => continuation(1, literal(['x', 'y'])))],
    ['with more than eight empty CONTINUATION frames', {}, times(9, () => empty)],
    ['of more than 32 KiB', {}, times(3, () => continuation(1, Buffer.alloc(11_000)))],
    ['with more than eight frames, on a stream that is rejected,', { maxConcurrentStreams: 0 }, times(9, () => empty)],
  ])('%s ends the connection', (_title, limits, frames) => {
    expectCalm(connected(limits).send(Buffer.concat([begun, frames])), 'header_block');
  });

  it('that is not complete after ten seconds ends the connection, however slowly it arrives', () => {
    const peer = connected().send(begun);
    for (let second = 0; second < 9; second += 1) peer.wait(1_000).send(empty.subarray(second % 9, (second % 9) + 1));
    expect(goawaysOf(peer.frames)).toEqual([]);
    peer.wait(1_100);

    expectCalm(peer, 'header_timeout');
  });

  it('interrupted at any byte by the end of the connection leaves no state behind', () => {
    const open = headers(1, request('/hold').subarray(0, 20), { endHeaders: false });
    const bytes = Buffer.concat([hello(), open, continuation(1, request('/hold').subarray(20), true)]);
    for (let length = 0; length <= bytes.length; length += 1) {
      const peer = new MemoryPeer().send(bytes.subarray(0, length)).close().wait(60_000, 10_000);
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
    ['one large entry referenced repeatedly (CVE-2016-6581)', [inserted(['x', 'y'.repeat(4_000)]), referenced(1_000)]],
    ['one tiny entry referenced repeatedly (CVE-2026-49975)', [inserted(['a', '']), referenced(16_000)]],
    ['many cookie fields', [inserted(['cookie', 'a']), referenced(200)]],
    ['many fields with an empty name (CVE-2019-9516)', [times(200, () => literal(['', '']))]],
    ['101 fields', [times(97, () => literal(['x', 'y']))]],
    ['a name longer than the limit', [literal(['x'.repeat(16_500), ''])]],
  ])('over a limit is answered with 431 and not passed to the application: %s', (_title, more) => {
    const fields = Buffer.concat([request(), ...more]);
    const first = headers(1, fields.subarray(0, 8_000), { endStream: true, endHeaders: false });
    const second = continuation(1, fields.subarray(8_000, 16_000));
    const peer = connected().send(Buffer.concat([first, second, continuation(1, fields.subarray(16_000), true)]));

    const answer = peer.frames.find(({ type, stream }) => type === FrameType.HEADERS && stream === 1);
    expect(fieldsOf(answer!.payload)).toEqual({ ':status': '431' });
    expect(peer.rejections).toEqual(['header_list']);
    expect(peer.application.opened).toBe(0);
    expectAlive(peer);
  });

  it('over a limit still updates the dynamic table', () => {
    const many = times(200, () => literal(['x', 'y']));
    const over = [request(), inserted(['te', 'trailers']), many, inserted(['x-more', 'z'])];
    const blocks = [over, [request(), indexed(63), indexed(62)], [request(), indexed(64)]];
    const peer = connected();
    for (const [at, fields] of blocks.entries()) {
      peer.send(headers(streamOf(at), Buffer.concat(fields), { endStream: true }));
    }
    expect(endedOf(peer.frames)).toEqual([1, 3]);
    expect(peer.rejections).toEqual(['header_list', 'compression_error']);
  });

  it('over a limit in trailers resets the stream', () => {
    const trailers = headers(
      1,
      times(101, () => literal(['x', 'y'])),
      { endStream: true },
    );
    const peer = connected().send(Buffer.concat([headers(1), trailers]));
    expect(resetsOf(peer.frames)).toEqual([[1, ENHANCE_YOUR_CALM]]);
    expectAlive(peer);
  });
});

describe('a flood', () => {
  const entries = Array.from({ length: 2_400 }, () => [Setting.HEADER_TABLE_SIZE, 0] as const);
  const unknownSettings = settings(...Array.from({ length: 32 }, () => [0xfa, 1] as const));

  /** `permitted`: what has no effect yet, in turns. */
  it.each<[title: string, as: Rejection, permitted: Buffer[], more: Buffer]>([
    ['of SETTINGS (CVE-2019-9515)', 'settings_flood', [times(99, () => settings())], settings()],
    ['of settings in one frame (CVE-2020-11080)', 'settings_flood', [], settings(...entries)],
    [
      'of window changes with a thousand open streams',
      'settings_flood',
      [times(1_000, (at) => get(streamOf(at), '/hold'))],
      times(1_000, (at) => settings([Setting.INITIAL_WINDOW_SIZE, at % 2 === 0 ? 0 : 2 ** 31 - 1])),
    ],
    // 5, plus twice the sum of one for the stream and ten for its DATA frame.
    ...[0, 1].map((id): [string, Rejection, Buffer[], Buffer] => [
      `of WINDOW_UPDATEs on ${id === 0 ? 'the connection' : 'a closed stream'}`,
      'window_update_flood',
      [get(1), times(27, () => windowUpdate(id, 1))],
      windowUpdate(id, 1),
    ]),
    ['of empty DATA frames (CVE-2019-9518)', 'faults', [headers(1), times(200, () => data(1))], data(1, '', false, 3)],
    ['of DATA frames of one byte', 'data_dribble', [headers(1), times(1_028, () => data(1, 'x'))], data(1, 'x')],
    ['of PRIORITY frames (CVE-2019-9513)', 'faults', [get(1), times(301, () => priority(3, 5))], priority(3, 5)],
    ['of unknown frames', 'faults', [times(300, () => frame(0xfa, 0, 0))], frame(0xfa, 0, 0)],
    ['of unknown settings', 'faults', [], times(10, () => unknownSettings)],
    ['of unsolicited acknowledgements of SETTINGS', 'faults', [times(200, () => settingsAck)], settingsAck],
    [
      'of DATA on streams that are no longer remembered',
      'faults',
      [times(200, (at) => get(streamOf(at))), times(500, () => data(1))],
      data(1),
    ],
  ])('%s ends the connection', (_title, as, permitted, more) => {
    const peer = connected();
    for (const bytes of permitted) peer.send(bytes);
    expectAlive(peer);
    expectCalm(peer.send(more), as);
  });

  it('of PINGs ends the connection with the debug data that gRPC clients expect (CVE-2019-9512)', () => {
    const peer = connected().send(times(5, () => ping()));

    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: 0, code: ENHANCE_YOUR_CALM, debug: 'too_many_pings' }]);
    expect(peer.frames.filter(({ type, flags }) => type === FrameType.PING && flags === Flag.ACK)).toHaveLength(3);
    expect(peer.rejections).toEqual(['ping_flood']);
    const slower = connected();
    for (let at = 0; at < 4; at += 1) slower.wait(9_900, 100).send(ping());
    expect(slower.rejections).toEqual(['ping_flood']);
  });

  it.each<[what: string, as: Rejection, burst: number, perSecond: number, make: (at: number) => Buffer]>([
    // The first SETTINGS is that of the preface.
    ['SETTINGS', 'settings_flood', 99, 1, () => settings()],
    ['faults', 'faults', 200, 10, () => settingsAck],
    ['rapid resets', 'rapid_reset', 10_000, 1_000, (at) => Buffer.concat([get(streamOf(at)), rstStream(streamOf(at))])],
  ])('of %s is detected when there are more per second than permitted', (_what, as, burst, perSecond, make) => {
    let sent = 0;
    const peer = connected();
    function send(count: number): void {
      const first = sent;
      sent += count;
      peer.send(times(count, (at) => make(first + at)));
    }
    send(burst);
    for (let second = 0; second < 5; second += 1) {
      peer.wait(1_000, 1_000);
      send(perSecond);
    }
    expectAlive(peer);
    peer.wait(1_000, 1_000);
    send(perSecond + 1);
    expectCalm(peer, as);
  });

  it.each<[traffic: string, send: (peer: MemoryPeer, at: number) => void, rounds: number]>([
    ['one SETTINGS frame per second', (peer) => peer.wait(1_000, 1_000).send(settings()), 160],
    ['one PING every ten seconds, from a proxy', (peer) => peer.wait(10_000, 1_000).send(ping()), 100],
    [
      'a PING and a WINDOW_UPDATE after each call, as from grpc-go',
      (peer, at) => peer.send(Buffer.concat([get(streamOf(at)), windowUpdate(0, 4), ping()])),
      20_000,
    ],
    [
      'a stream of small messages',
      (peer, at) => peer.send(at === 0 ? headers(1, request('/messages')) : data(1, 'twenty bytes each..')),
      10_000,
    ],
  ])('is not detected in %s', (_traffic, send, rounds) => {
    const peer = connected();
    for (let at = 0; at < rounds; at += 1) send(peer, at);

    expect(peer.rejections).toEqual([]);
    expect(goawaysOf(peer.frames)).toEqual([]);
  });
});
