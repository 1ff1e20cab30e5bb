import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A temporary folder for RUNTIME_ROOT, with rule files in `config`. */
export class RuleFolder implements AsyncDisposable {
  private constructor(readonly root: string) {}

  static async with(files: Readonly<Record<string, string>>): Promise<RuleFolder> {
    const folder = new RuleFolder(await mkdtemp(join(tmpdir(), 'weir-rules-')));
    await mkdir(join(folder.root, 'config'));
    for (const [name, text] of Object.entries(files)) await folder.write(name, text);
    return folder;
  }

  /** The settings with which the service reads this folder and detects changes in place. */
  get env(): Readonly<Record<string, string>> {
    return { RUNTIME_ROOT: this.root, RUNTIME_WATCH_ROOT: 'false' };
  }

  /** Writes a file in one step, by a rename, as many editors do: no reader sees a part of it. */
  async write(name: string, text: string): Promise<void> {
    const path = join(this.root, 'config', name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.new~`, text);
    await rename(`${path}.new~`, path);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.root, 'config', name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}
