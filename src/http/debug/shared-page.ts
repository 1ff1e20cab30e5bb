/**
 * Generates a page whose text is long. One at a time, however many callers ask for it: those that ask while one is generated share the
 * next one, because what they see must not be older than their request.
 */
export class SharedPage {
  readonly #generate: () => AsyncIterable<string>;
  /** Ends with the page that is generated now, or with the next one. */
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<string> | undefined;

  /** @param generate the parts of the page, each in a turn of the event loop of its own */
  constructor(generate: () => AsyncIterable<string>) {
    this.#generate = generate;
  }

  /** The whole page. Rejects with what `generate` has thrown. */
  text(): Promise<string> {
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => {
        this.#next = undefined;
        return this.#join();
      });
      this.#last = this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  async #join(): Promise<string> {
    const parts: string[] = [];
    for await (const part of this.#generate()) parts.push(part);
    return parts.join('');
  }
}
