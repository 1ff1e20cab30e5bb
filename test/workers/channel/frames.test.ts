import fc from 'fast-check';
import { MAX_BODY_BYTES } from '../../../src/workers/channel/channel';
import { FrameReader, encodeFrame } from '../../../src/workers/channel/frames';
import { TOPICS, type Topic } from '../../../src/workers/channel/topics';

type Frame = readonly [topic: Topic, body: string];

const frame: fc.Arbitrary<Frame> = fc.tuple(
  fc.constantFrom(...Object.values(TOPICS)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('hex')),
);

function cutAt(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((one, other) => one - other), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

describe('the frames of a channel', () => {
  it('are read as they were written wherever the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(frame), fc.array(fc.nat(), { maxLength: 20 }), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(([topic, body]) => encodeFrame(topic, Buffer.from(body, 'hex'))));
        const read: Frame[] = [];
        const reader = new FrameReader((topic, body) => read.push([topic, body.toString('hex')]));
        for (const chunk of cutAt(bytes, cuts)) expect(reader.read(chunk)).toBe(true);
        expect(read).toEqual(frames);
      }),
    );
  });

  it('are read when every byte arrives by itself', () => {
    const read: string[] = [];
    const reader = new FrameReader((_, body) => read.push(body.toString()));
    const bytes = Buffer.concat([
      encodeFrame(TOPICS.rules, 'one'),
      encodeFrame(TOPICS.rules, ''),
      encodeFrame(TOPICS.rules, 'two'),
    ]);
    for (const byte of bytes) reader.read(Buffer.of(byte));
    expect(read).toEqual(['one', '', 'two']);
  });

  it('contain text in UTF-8', () => {
    expect(encodeFrame(TOPICS.control, 'é')).toEqual(encodeFrame(TOPICS.control, Buffer.from([0xc3, 0xa9])));
  });

  it('have a maximum length', () => {
    const longest = encodeFrame(TOPICS.rules, new Uint8Array(MAX_BODY_BYTES));
    expect(new FrameReader(() => undefined).read(longest)).toBe(true);
    expect(() => encodeFrame(TOPICS.rules, new Uint8Array(MAX_BODY_BYTES + 1))).toThrow(RangeError);
  });

  it('are invalid when they are too long or of an unknown topic', () => {
    const tooLong = Buffer.alloc(5);
    tooLong.writeUInt32LE(MAX_BODY_BYTES + 1);
    const unknown = Buffer.from([0, 0, 0, 0, 255]);
    for (const bytes of [tooLong, unknown]) expect(new FrameReader(() => undefined).read(bytes)).toBe(false);
  });
});
