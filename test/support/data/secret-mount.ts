import { ConfigMapMount, RuleTree } from './rule-tree';

/** A temporary folder as Kubernetes mounts a Secret, which has the layout of a mounted ConfigMap. */
export class SecretMount implements Disposable {
  readonly #tree = new RuleTree();
  readonly #mount = new ConfigMapMount(this.#tree, '.');

  constructor(files: Readonly<Record<string, string>>) {
    this.replace(files);
  }

  /** The path of a file, for the setting that names it. */
  path(name: string): string {
    return this.#tree.at(name);
  }

  /** Switches to these files; those that are left out are missing from now on. */
  replace(files: Readonly<Record<string, string>>): void {
    this.#mount.publish(files);
  }

  [Symbol.dispose](): void {
    this.#tree[Symbol.dispose]();
  }
}
