import { DerivedDefault, type Setting, type SettingFamily, type SettingGroup } from '../table/setting';

/** A setting in words, for the help text and for the README. */
export interface Description {
  readonly name: string;
  readonly alias: string | undefined;
  readonly allowed: string;
  /** Undefined when there is none. */
  readonly default: string | undefined;
  readonly help: string;
}

/** The settings of a group in words, those first that have a row each. */
export function describeGroup(group: SettingGroup): readonly Description[] {
  return [
    ...group.settings.map((setting) => describeSetting(group, setting)),
    ...(group.families ?? []).map(describeFamily),
  ];
}

function describeSetting(group: SettingGroup, setting: Setting): Description {
  const { name, alias, type, help, plannedFeature, plannedValues = {} } = setting;
  const later = Object.keys(plannedValues).join(', ');
  const remark = later !== '' ? ` ${later}: in a later release.` : '';
  const own = plannedFeature !== undefined && group.plannedFeature === undefined ? ' In a later release.' : '';
  return { name, alias, allowed: type.allowed, default: describeDefault(setting), help: help + remark + own };
}

function describeDefault({ type, default: value, defaultText }: Setting): string | undefined {
  if (defaultText !== undefined) return defaultText;
  if (value instanceof DerivedDefault) return value.text;
  return value === undefined ? undefined : type.format(value) || undefined;
}

function describeFamily({ name, alias, allowed, defaultText, help }: SettingFamily): Description {
  return { name, alias, allowed, default: defaultText, help };
}

/** The heading of a group. */
export function headingOf({ title, plannedFeature }: SettingGroup): string {
  return plannedFeature === undefined ? title : `${title} (in a later release)`;
}
