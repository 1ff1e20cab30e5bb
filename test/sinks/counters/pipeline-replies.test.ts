import { PipelineReplies } from '../../../src/sinks/counters/kvstore/protocol';
import { isReply } from '../../../src/sinks/counters/kvstore/store-error';
import { encode } from '../../support/servers/command-server';

const REPLIES = [7, new Error('WRONGTYPE a list, ärgerlich'), -12, 9_007_199_254_740_991, 0] as const;
const TEXT = Buffer.from(REPLIES.map(encode).join(''));

/** Reads bytes in two chunks, and returns what is left of both. */
function readIn(pipeline: PipelineReplies, bytes: Buffer, length: number): string {
  return Buffer.concat(
    [bytes.subarray(0, length), bytes.subarray(length)].map((chunk) => pipeline.read(chunk)),
  ).toString();
}

describe('the replies to a pipeline', () => {
  it('are numbers and errors, and leave what follows them, at whichever byte they are cut', () => {
    for (const rest of ['', ':5\r\n', '+PONG\r\n*1\r\n:7\r\n']) {
      const bytes = Buffer.concat([TEXT, Buffer.from(rest)]);
      for (let length = 0; length <= bytes.length; length += 1) {
        const pipeline = new PipelineReplies();
        pipeline.expect(REPLIES.length);
        expect(readIn(pipeline, bytes, length)).toBe(rest);
        expect(pipeline.replies.map((reply) => (isReply(reply) ? new Error(reply.message) : reply))).toEqual(REPLIES);
        // Until the next pipeline, all is left.
        expect(readIn(pipeline, bytes, length)).toBe(bytes.toString());
      }
    }
  });

  it('arrive byte by byte, one pipeline after the other', () => {
    const pipeline = new PipelineReplies();
    for (let round = 0; round < 2; round += 1) {
      pipeline.expect(REPLIES.length);
      const left = Array.from(TEXT, (_, at) => pipeline.read(TEXT.subarray(at, at + 1)).length);
      expect([left.every((length) => length === 0), pipeline.replies.length]).toEqual([true, REPLIES.length]);
    }
  });

  it.each(['+OK\r\n', '$1\r\n5\r\n', '*1\r\n:1\r\n', '\r\n'])('of another kind are an error: %j', (text) => {
    const pipeline = new PipelineReplies();
    pipeline.expect(2);
    expect(() => pipeline.read(Buffer.from(`:1\r\n${text}`))).toThrow('neither a number nor an error');
  });
});
