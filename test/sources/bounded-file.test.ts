import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readBoundedFile } from '../../src/sources/bounded-file';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-bounded-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('readBoundedFile', () => {
  it.each([0, 1, 999, 1000])('returns the contents of a file of %i bytes, in a buffer of their own', async (bytes) => {
    const path = join(dir, 'file');
    const content = Buffer.alloc(bytes, 'x');
    writeFileSync(path, content);
    const read = await readBoundedFile(path, 1000);
    expect(read).toEqual({ content });
    expect(read.content?.buffer.byteLength).toBe(bytes);
  });

  it('returns the size of a larger file without reading it', async () => {
    const path = join(dir, 'file');
    writeFileSync(path, '');
    truncateSync(path, 2 ** 40);
    expect(await readBoundedFile(path, 1000)).toEqual({ tooLarge: 2 ** 40 });
  });

  it('reads a file that reports no size to its end, or up to the limit', async () => {
    const path = '/proc/self/limits';
    expect(statSync(path).size).toBe(0);
    const { content } = await readBoundedFile(path, 100_000);
    expect(Buffer.from(content ?? []).toString()).toMatch(/^Limit[^]*\n$/);
    expect((await readBoundedFile(path, 10)).tooLarge).toBeGreaterThan(10);
  });

  it('rejects a pipe, which no program writes to, and a device, which has no end', async () => {
    execFileSync('mkfifo', [join(dir, 'pipe')]);
    await expect(readBoundedFile(join(dir, 'pipe'), 1000)).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(readBoundedFile('/dev/zero', 1000)).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('rejects a file that does not exist with the error of the file system', async () => {
    await expect(readBoundedFile(join(dir, 'none'), 1000)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
