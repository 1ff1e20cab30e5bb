import { hideSecrets } from './hide-credentials';

/**
 * How many of the texts that a source had are masked: messages about a previous one may still arrive after it was
 * replaced.
 */
const KEPT_TEXTS = 8;

/** Replaces secrets in texts, also those that become known while the process runs. */
export class SecretMask {
  readonly #permanent: readonly string[];
  /** The secrets of the last texts of each source, the newest last. */
  readonly #added = new Map<string, (readonly string[])[]>();
  #hide: (text: string) => string;

  /** @param permanent secrets that are always masked */
  constructor(permanent: readonly string[] = []) {
    this.#permanent = permanent;
    this.#hide = hideSecrets(permanent);
  }

  /** The text with `***` for each secret, as {@link hideSecrets}. */
  readonly hide = (text: string): string => this.#hide(text);

  /** Masks the secrets of the present text of a source, and those of its previous ones. */
  add(source: string, secrets: readonly string[]): void {
    const texts = this.#added.get(source) ?? [];
    if (isSame(texts.at(-1), secrets)) return;
    this.#added.set(source, [...texts.filter((text) => !isSame(text, secrets)), secrets].slice(-KEPT_TEXTS));
    this.#hide = hideSecrets([...this.#permanent, ...[...this.#added.values()].flat(2)]);
  }
}

function isSame(one: readonly string[] | undefined, other: readonly string[]): boolean {
  return one?.length === other.length && one.every((secret, index) => secret === other[index]);
}
