import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A rule file of one domain, whose one rule allows so many requests. */
export function rules(domain: string, requestsPerUnit: number): string {
  return `domain: ${domain}\ndescriptors:\n  - key: k\n    rate_limit: { unit: second, requests_per_unit: ${requestsPerUnit} }\n`;
}

/** A temporary folder of the real file system, for a test to do to it what operators do. */
export class RuleTree {
  constructor(readonly base = mkdtempSync(join(tmpdir(), 'weir-rules-'))) {}

  at(path: string): string {
    return join(this.base, path);
  }

  /** Writes a file in place, its folders made when they are missing. */
  write(path: string, content: string): void {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(path), content);
  }

  /** Writes a file beside it and renames it over, as `sed -i` and careful editors do. */
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

  /** Puts a link in the place of another in one step: `mv -T`, and what `ln -sfn` does nowadays. */
  switchLink(path: string, target: string): void {
    symlinkSync(target, this.at(`${path}.next`));
    this.move(`${path}.next`, path);
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** A folder that is kept as the kubelet keeps a ConfigMap mount: visible links into `..data`, itself a link that is swapped. */
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

  /** @param files contents by path; a path with folders is what `items` of the volume can ask for */
  publish(files: Readonly<Record<string, string>>): void {
    this.#generation += 1;
    const dated = `..2026_11_21_${this.#generation}`;
    for (const [path, content] of Object.entries(files)) this.#tree.write(`${this.#path}/${dated}/${path}`, content);
    const data = `${this.#path}/..data`;
    if (this.#generation === 1) this.#tree.link(data, dated);
    else this.#tree.switchLink(data, dated);
    for (const name of new Set(Object.keys(files).map((path) => path.split('/')[0] ?? path))) {
      if (this.#generation === 1) this.#tree.link(`${this.#path}/${name}`, `..data/${name}`);
    }
    if (this.#generation > 1 && !this.#keepsOldFolders) {
      this.#tree.remove(`${this.#path}/..2026_11_21_${this.#generation - 1}`);
    }
  }
}
