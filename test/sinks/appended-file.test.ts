import { mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppendedFile } from '../../src/sinks/appended-file';
import { NamedPipe } from '../support/processes/named-pipe';
import { until } from '../support/waiting/until';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-appended-'));
  path = join(folder, 'decisions.json');
});
afterEach(async () => {
  for (const file of opened.splice(0)) await file.close();
  await rm(folder, { recursive: true });
});

const opened: AppendedFile[] = [];
async function open(at = path): Promise<AppendedFile> {
  const file = await AppendedFile.open(at);
  opened.push(file);
  return file;
}

function write(file: AppendedFile, text: string): Promise<void> {
  return new Promise((resolve, reject) => file.write(text, (error) => (error ? reject(error) : resolve())));
}

describe('a file to which texts are appended', () => {
  it('keeps what it contains, and is created if it does not exist', async () => {
    await write(await open(), 'one\n');
    await write(await open(), 'two\n');
    expect(await readFile(path, 'utf8')).toBe('one\ntwo\n');
    expect((await stat(path)).mode & 0o007).toBe(0);
  });

  it('is created again after it was renamed', async () => {
    const file = await open();
    await write(file, 'one\n');
    await rename(path, `${path}.1`);
    await until('the new file', async () => {
      await write(file, 'two\n');
      return readFile(path, 'utf8').then(
        (text) => text === 'two\n',
        () => false,
      );
    });
    expect(await readFile(`${path}.1`, 'utf8')).toMatch(/^one\n/);
  });

  it('reports an error while it cannot be created again, and recovers', async () => {
    const file = await open();
    await rename(folder, `${folder}-moved`);
    await until('an error', () =>
      write(file, 'lost\n').then(
        () => false,
        (error: Error) => error.message.includes('ENOENT'),
      ),
    );
    await rename(`${folder}-moved`, folder);
    await until('a write', () =>
      write(file, 'kept\n').then(
        () => true,
        () => false,
      ),
    );
    expect(await readFile(path, 'utf8')).toMatch(/kept\n$/);
  });

  it('may be a named pipe, which is not waited for when it has no reader', async () => {
    using pipe = new NamedPipe();
    const file = await open(pipe.path);
    await write(file, 'one\n');
    pipe.read();
    await until('the text', () => pipe.text !== '');
    expect(pipe.text).toBe('one\n');
  });

  it('is rejected when it cannot be opened', async () => {
    await writeFile(path, '');
    await expect(AppendedFile.open(join(path, 'below-a-file'))).rejects.toThrow('ENOTDIR');
  });
});
