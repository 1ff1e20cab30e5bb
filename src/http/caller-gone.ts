/** The caller has closed its connection: nobody is left to answer. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone';
}
