import { NO_TAGS, type Tags, joinTags } from './tags';

/** A number that only grows, from the start of the process. It is on the decision path, so `value` is a plain field. */
export class Counter {
  value = 0;
  /** The name followed by the tags. */
  readonly fullName: string;

  constructor(
    readonly name: string,
    readonly tags: Tags = NO_TAGS,
  ) {
    this.fullName = joinTags(name, tags);
  }

  add(amount: number): void {
    this.value += amount;
  }
}
