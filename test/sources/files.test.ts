import { execFileSync } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { readBoundedFile } from '../../src/sources/bounded-file';
import { readSecretFile } from '../../src/sources/secret-files';
import { SecretMount } from '../support/data/secret-mount';
import { TemporaryFolder } from '../support/data/temporary-folder';

const folder = new TemporaryFolder();
execFileSync('mkfifo', [folder.at('pipe')]);
afterAll(() => folder[Symbol.dispose]());

function file(content: string | Uint8Array, bytes?: number): string {
  const path = folder.at('file');
  writeFileSync(path, content);
  if (bytes !== undefined) truncateSync(path, bytes);
  return path;
}

describe('readBoundedFile', () => {
  it.each([0, 1, 999, 1000])('returns the contents of a file of %i bytes, in a buffer of their own', async (bytes) => {
    const content = Buffer.alloc(bytes, 'x');
    const read = await readBoundedFile(file(content), 1000);
    expect(read).toEqual({ content });
    expect(read.content?.buffer.byteLength).toBe(bytes);
  });

  it('returns the size of a larger file without reading it', async () => {
    expect(await readBoundedFile(file('', 2 ** 40), 1000)).toEqual({ tooLarge: 2 ** 40 });
  });

  it('reads a file that reports no size to its end, or up to the limit', async () => {
    const path = '/proc/self/limits';
    const { content } = await readBoundedFile(path, 100_000);
    expect(Buffer.from(content ?? []).toString()).toMatch(/^Limit[^]*\n$/);
    expect((await readBoundedFile(path, 10)).tooLarge).toBeGreaterThan(10);
  });

  it.each([
    ['a pipe, which no program writes to', () => folder.at('pipe'), 'EINVAL'],
    ['a device, which has no end', () => '/dev/zero', 'EINVAL'],
    ['a file that does not exist', () => folder.at('none'), 'ENOENT'],
  ])('rejects %s', async (_, path, code) => {
    await expect(readBoundedFile(path(), 1000)).rejects.toMatchObject({ code });
  });
});

describe('readSecretFile', () => {
  it.each([
    ['a line feed at the end, which is removed', 'word\n', 'word'],
    ['a carriage return and a line feed at the end, which are removed', 'word\r\n', 'word'],
    ['blanks and line feeds elsewhere, which belong to the secret', ' two \nlines€ \n\n', ' two \nlines€ \n'],
    ['64 KiB', 'x'.repeat(65_536), 'x'.repeat(65_536)],
  ])('returns the contents of a file with %s', (_, content, secret) => {
    expect(readSecretFile(file(content))).toBe(secret);
  });

  it.each<[what: string, path: () => string, reason: string]>([
    ['a file that does not exist', () => folder.at('none'), 'it cannot be read (ENOENT)'],
    ['a file of blanks', () => file(' \n\n'), 'it is empty'],
    ['a larger file', () => file('x'.repeat(65_537)), 'it has more than 65536 bytes'],
    ['a file that is not text', () => file(Uint8Array.of(0x77, 0xff)), 'it is not text in UTF-8'],
    ['a device without an end', () => '/dev/zero', 'it is not a regular file'],
    ['a pipe, which no program writes to', () => folder.at('pipe'), 'it is not a regular file'],
  ])('rejects %s', (_, path, reason) => {
    expect(() => readSecretFile(path())).toThrow(expect.objectContaining({ message: reason }));
  });

  it('follows the links of a mounted Secret, also when they have been switched', () => {
    using mount = new SecretMount({ password: 'first\n' });
    expect(readSecretFile(mount.path('password'))).toBe('first');
    mount.replace({ password: 'second\n' });
    expect(readSecretFile(mount.path('password'))).toBe('second');
    mount.replace({});
    expect(() => readSecretFile(mount.path('password'))).toThrow('it cannot be read (ENOENT)');
  });
});
