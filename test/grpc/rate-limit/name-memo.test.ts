import fc from 'fast-check';
import { NameMemo } from '../../../src/grpc/rate-limit/name-memo';
import { SHORT_TEXT } from '../../../src/grpc/rate-limit/short-ascii';

describe('the memo of names', () => {
  it('returns the text of the bytes, whatever it has read before', () => {
    const memo = new NameMemo();
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: SHORT_TEXT })), (names) => {
        for (const name of [...names, ...names]) {
          const bytes = Buffer.from(`<${name}>`, 'latin1');
          const isAscii = bytes.every((byte) => byte < 0x80);
          expect(memo.find(bytes, 1, bytes.length - 1)).toBe(isAscii ? name : undefined);
        }
      }),
    );
  });

  it('tells names apart that have the same slot', () => {
    const memo = new NameMemo();
    // Far more names than slots, each of which is read again after all others.
    const names = Array.from({ length: 5_000 }, (_, number) => Buffer.from(`name-${number}`));
    for (const name of [...names, ...names]) expect(memo.find(name, 0, name.length)).toBe(name.toString());
  });

  it('keeps no view of the bytes', () => {
    const memo = new NameMemo();
    const bytes = Buffer.from('user');
    memo.find(bytes, 0, 4);
    bytes.write('path');
    expect(memo.find(bytes, 0, 4)).toBe('path');
    expect(memo.find(Buffer.from('user'), 0, 4)).toBe('user');
  });

  it('leaves texts that are not ASCII to the decoder', () => {
    const bytes = Buffer.from('Ümläut');
    expect(new NameMemo().find(bytes, 0, bytes.length)).toBeUndefined();
  });
});
