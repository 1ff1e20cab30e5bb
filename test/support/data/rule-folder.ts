import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A folder of rule files as RUNTIME_ROOT names it, with `config` in it. */
export class RuleFolder implements AsyncDisposable {
  private constructor(readonly root: string) {}

  static async with(files: Readonly<Record<string, string>>): Promise<RuleFolder> {
    const folder = new RuleFolder(await mkdtemp(join(tmpdir(), 'weir-rules-')));
    await mkdir(join(folder.root, 'config'));
    for (const [name, text] of Object.entries(files)) await folder.write(name, text);
    return folder;
  }

  /** The settings that make the service read this folder, and notice files that change in place. */
  get env(): Readonly<Record<string, string>> {
    return { RUNTIME_ROOT: this.root, RUNTIME_WATCH_ROOT: 'false' };
  }

  /** Puts a file in place as a whole, as an editor that renames does. */
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
