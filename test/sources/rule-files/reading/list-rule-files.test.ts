import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { listRuleFiles } from '../../../../src/sources/rule-files/reading/list-rule-files';

describe('listRuleFiles', () => {
  let base: string;
  let dir: string;

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'weir-listing-'));
    dir = join(base, 'config');
    mkdirSync(dir);
  });
  afterEach(() => rmSync(base, { recursive: true }));

  function file(path: string, content = '') {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  }
  function link(path: string, target: string) {
    return symlinkSync(target, join(dir, path));
  }
  function list(ignoreDotFiles = false) {
    return listRuleFiles(dir, { ignoreDotFiles });
  }

  it('finds the .yaml and .yml files of the folder and its subfolders, sorted by relative path', async () => {
    for (const path of ['b.yml', 'a.yaml', 'z/a.yaml', 'a/deep/er.yml', 'a.b.yaml']) file(path);
    const { files, folders } = await list();
    expect(files).toEqual(['a.b.yaml', 'a.yaml', 'a/deep/er.yml', 'b.yml', 'z/a.yaml']);
    expect(folders).toEqual(['', 'a', 'a/deep', 'z']);
  });

  it('lists every other regular file separately', async () => {
    for (const path of ['a.yaml', 'notes.txt', 'sub/a.YAML', 'yaml']) file(path);
    expect(await list()).toMatchObject({ files: ['a.yaml'], others: ['notes.txt', 'sub/a.YAML', 'yaml'] });
  });

  it('includes names that begin with a dot, and the contents of such folders, unless ignoreDotFiles is set', async () => {
    for (const path of ['.a.yaml', '.git/b.yaml', '.keep', 'c.yaml']) file(path);
    expect(await list(false)).toMatchObject({ files: ['.a.yaml', '.git/b.yaml', 'c.yaml'], others: ['.keep'] });
    expect(await list(true)).toMatchObject({ files: ['c.yaml'], others: [] });
  });

  it('always skips names that begin with two dots', async () => {
    for (const path of ['..2026/a.yaml', '..b.yaml', 'c.yaml', '...yaml']) file(path);
    link('..data', '..2026');
    expect(await list(false)).toEqual({
      files: ['c.yaml'],
      links: [],
      others: [],
      linkedFolders: [],
      folders: [''],
    });
  });

  it('skips folders named lost+found, which only root can read in the root of a volume, and no other names', async () => {
    for (const path of ['lost+found/a.yaml', 'sub/lost+found/b.txt', 'lost+found.d/c.yaml', 'lost+found.yaml'])
      file(path);
    expect(await list()).toEqual({
      files: ['lost+found.d/c.yaml', 'lost+found.yaml'],
      links: [],
      others: [],
      linkedFolders: [],
      folders: ['', 'lost+found.d', 'sub'],
    });
  });

  it('includes links to files, and lists links to folders without following them', async () => {
    mkdirSync(join(base, 'outside'));
    writeFileSync(join(base, 'outside/a.yaml'), '');
    writeFileSync(join(base, 'outside/a.txt'), '');
    link('a.yaml', '../outside/a.yaml');
    link('a.txt', '../outside/a.txt');
    link('outside', '../outside');
    link('loop', '.');
    expect(await list()).toEqual({
      files: ['a.yaml'],
      links: ['a.yaml'],
      others: ['a.txt'],
      linkedFolders: ['loop', 'outside'],
      folders: [''],
    });
  });

  it('includes a broken link, so that reading it reports the error', async () => {
    link('gone.yaml', 'nowhere');
    link('round.yml', 'round.yml');
    link('gone.txt', 'nowhere');
    expect(await list()).toMatchObject({ files: ['gone.yaml', 'round.yml'], others: [] });
  });

  it('skips pipes, because reading one could block forever', async () => {
    execFileSync('mkfifo', [join(dir, 'pipe.yaml')]);
    link('piped.yaml', 'pipe.yaml');
    expect(await list()).toMatchObject({ files: [], others: [] });
  });

  it('finds the files of a folder that is itself a link', async () => {
    file('a.yaml');
    symlinkSync('config', join(base, 'current'));
    expect((await listRuleFiles(join(base, 'current'), { ignoreDotFiles: false })).files).toEqual(['a.yaml']);
  });

  it('fails when the folder does not exist', async () => {
    await expect(listRuleFiles(join(dir, 'missing'), { ignoreDotFiles: false })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});
