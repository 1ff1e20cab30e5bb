/** The receiver refused lines after it had taken the first of them. */
export class TakenInPart extends Error {
  /** @param taken how many lines were taken, from the first */
  constructor(
    readonly taken: number,
    refusal: Error,
  ) {
    super(refusal.message, { cause: refusal });
  }
}
