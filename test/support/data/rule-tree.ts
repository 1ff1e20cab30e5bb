import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { TemporaryFolder } from './temporary-folder';

/** A rule file of one domain, with one rule of this limit. */
export function rules(domain: string, requestsPerUnit: number): string {
  return `domain: ${domain}\ndescriptors:\n  - key: k\n    rate_limit: { unit: second, requests_per_unit: ${requestsPerUnit} }\n`;
}

/** A temporary folder with the operations that operators and tools perform on rule files. */
export class RuleTree extends TemporaryFolder {
  /** Writes another file and renames it over this one, as `sed -i` and many editors do. */
  replace(path: string, content: string): void {
    this.write(`${path}.new`, content);
    this.move(`${path}.new`, path);
  }

  folder(path: string): void {
    mkdirSync(this.at(path), { recursive: true });
  }

  move(from: string, to: string): void {
    renameSync(this.at(from), this.at(to));
  }

  remove(path: string): void {
    rmSync(this.at(path), { recursive: true });
  }

  link(path: string, target: string): void {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    symlinkSync(target, this.at(path));
  }

  /** Replaces a link atomically, as `mv -T` and current versions of `ln -sfn` do. */
  switchLink(path: string, target: string): void {
    symlinkSync(target, this.at(`${path}.next`));
    this.move(`${path}.next`, path);
  }
}

/** A folder with the layout of a Kubernetes ConfigMap mount: visible links through `..data`, a link that is swapped. */
export class ConfigMapMount {
  readonly #tree: RuleTree;
  readonly #path: string;
  readonly #keepsOldFolders: boolean;
  #generation = 0;

  constructor(tree: RuleTree, path: string, keepsOldFolders = false) {
    this.#tree = tree;
    this.#path = path;
    this.#keepsOldFolders = keepsOldFolders;
    tree.folder(path);
  }

  /** @param files contents by path; a path with folders is what the `items` of a volume can define */
  publish(files: Readonly<Record<string, string>>): void {
    this.#generation += 1;
    const dated = `..2026_11_21_${this.#generation}`;
    this.#tree.folder(`${this.#path}/${dated}`);
    for (const [path, content] of Object.entries(files)) this.#tree.write(`${this.#path}/${dated}/${path}`, content);
    const data = `${this.#path}/..data`;
    if (this.#generation === 1) {
      const names = new Set(Object.keys(files).map((path) => path.split('/')[0] ?? path));
      this.#tree.link(data, dated);
      for (const name of names) this.#tree.link(`${this.#path}/${name}`, `..data/${name}`);
      return;
    }
    this.#tree.switchLink(data, dated);
    if (!this.#keepsOldFolders) this.#tree.remove(`${this.#path}/..2026_11_21_${this.#generation - 1}`);
  }
}
