import type { Field, Settings } from './settings';

/** Some settings and how they were given: what a default that follows from others, or a check across several, looks at. */
export interface SettingsView<Seen extends Field = Field> {
  readonly settings: Pick<Settings, Seen>;
  /** Whether the environment gives the setting. */
  readonly isGiven: (field: Seen) => boolean;
  /** The variable that gives the setting, else its neutral name. */
  readonly nameOf: (field: Seen) => string;
}
