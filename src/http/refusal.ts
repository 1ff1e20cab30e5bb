/** An answer that is an error of the caller's or a lack of ours: its status, and what the body says about it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  /**
   * @param code for programs, one word of lower case letters and `_`
   * @param message for people, one sentence
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}
