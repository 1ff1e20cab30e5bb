/** The environment holds settings that cannot be used. The message names every one of them and holds no secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  /** One sentence for each thing that is wrong. */
  constructor(readonly problems: readonly string[]) {
    super(['These settings cannot be used:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
  }
}
