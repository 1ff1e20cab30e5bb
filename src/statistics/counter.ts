import { NO_TAGS, type Tags, joinTags } from './tags';

/** A number that only grows, from the start of the process. Read and added to directly: it sits on the decision path. */
export class Counter {
  value = 0;
  /** The name with the tags at its end. */
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
