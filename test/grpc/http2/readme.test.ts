import { readFileSync } from 'node:fs';
import { DEFAULT_LIMITS } from '../../../src/grpc/http2/limits/limits';
import { REJECTIONS } from '../../../src/grpc/http2/limits/rejections';

const README = readFileSync(`${__dirname}/../../../src/grpc/http2/README.md`, 'utf8');
const rows = /## Limits\n(.*?)\n## /s
  .exec(README)![1]!
  .split('\n')
  .filter((line) => /^\| `/.test(line));
function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/`(\w+)`/g), ([, name]) => name!);
}

describe('the README of the HTTP/2 server', () => {
  it('lists every limit, and no other', () => {
    const listed = rows.flatMap((row) => namesIn(row.split('|')[1]!));

    expect(listed.toSorted()).toEqual(Object.keys(DEFAULT_LIMITS).toSorted());
  });

  it('names every kind of rejection', () => {
    expect(namesIn(README)).toEqual(expect.arrayContaining([...REJECTIONS]));
  });

  it('names no kind of rejection that does not exist', () => {
    const counted = rows.flatMap((row) => namesIn(row.split('|').at(-2)!));

    expect(REJECTIONS).toEqual(expect.arrayContaining(counted));
  });
});
