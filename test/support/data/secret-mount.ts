import { mkdir, mkdtemp, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A folder as Kubernetes mounts a Secret: each file is a link into `..data`, itself a link to a folder with the contents. A new
 * version is a new folder, to which `..data` is switched by a rename.
 */
export class SecretMount implements AsyncDisposable {
  #versions = 0;

  private constructor(readonly folder: string) {}

  static async with(files: Readonly<Record<string, string>>): Promise<SecretMount> {
    const mount = new SecretMount(await mkdtemp(join(tmpdir(), 'weir-secret-')));
    await mount.replace(files);
    for (const name of Object.keys(files)) await symlink(join('..data', name), mount.path(name));
    return mount;
  }

  /** The path of a file, for the setting that names it. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /** Switches to these files; those that are left out are missing from now on. */
  async replace(files: Readonly<Record<string, string>>): Promise<void> {
    const before = await readlink(this.path('..data')).catch(() => undefined);
    const version = `..version-${(this.#versions += 1)}`;
    await mkdir(this.path(version));
    for (const [name, text] of Object.entries(files)) await writeFile(join(this.path(version), name), text);
    await symlink(version, this.path('..data_tmp'));
    await rename(this.path('..data_tmp'), this.path('..data'));
    if (before !== undefined) await rm(this.path(before), { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
