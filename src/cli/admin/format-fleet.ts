import type { Fleet, FleetInstance } from '../../operators/live-answers';
import { counted } from '../../text/counted';
import { visibleLines } from '../../text/visible';
import { formatOffenders, healthText, partText } from './format-answers';

/** Each instance, with the parts that are not green, and what differs. */
export function formatFleetHealth(fleet: Fleet): string {
  const lines: string[] = [];
  for (const instance of fleet.instances) {
    const { health, problem } = instance;
    if (problem !== null || health === null) {
      lines.push(withoutAnswer(instance));
      continue;
    }
    lines.push(`${nameOf(instance)}: ${healthText(health)}`);
    if (instance.note !== null) lines.push(`  ${instance.note}`);
    for (const name of ['store', 'rules', 'process'] as const) {
      if (health[name].state !== 'green') lines.push(`  ${partText(name, health[name])}`);
    }
  }
  return visibleLines([...lines, ...differencesOf(fleet)]);
}

/** The active rules of each instance, and whether they differ. */
export function formatFleetRules(fleet: Fleet): string {
  const lines = fleet.instances.map((instance) => {
    const { loaded, problem, name } = instance;
    if (problem !== null || name === null) return withoutAnswer(instance);
    if (loaded === null) return `${nameOf(instance)}: no rules are loaded`;
    return `${nameOf(instance)}: ${counted(loaded.rules, 'rule')}, version ${loaded.version}, loaded ${loaded.at}`;
  });
  return visibleLines([...lines, ...differencesOf(fleet).filter((line) => line.startsWith('rules'))]);
}

/** The callers that all instances together have limited most. */
export function formatFleetTop(
  { offenders, instances }: Fleet,
  { domain, top }: { readonly domain: string; readonly top: number },
): string {
  if (offenders === null) return 'the operator token is needed to see callers';
  const shown = offenders.filter((offender) => domain === '' || offender.domain === domain).slice(0, top);
  const missing = instances.filter(({ problem, name }) => problem !== null || name === null);
  return [
    shown.length === 0 ? 'no caller is limited' : formatOffenders(shown),
    ...missing.map((instance) => visibleLines([withoutAnswer(instance)])),
  ].join('\n');
}

function nameOf({ name, address }: FleetInstance): string {
  return address === null ? `${name} (this one)` : `${name ?? 'an instance'} at ${address}`;
}

function withoutAnswer(instance: FleetInstance): string {
  const { problem, answeredAt } = instance;
  const last = answeredAt === null ? '' : `; its last answer was at ${answeredAt}`;
  return `${nameOf(instance)}: no answer: ${problem ?? 'it has not been asked yet'}${last}`;
}

function differencesOf({ differences, omittedDifferences }: Fleet): readonly string[] {
  const odd = differences.filter(({ isExpected }) => !isExpected);
  const lines = odd.map(({ aspect, name, isHidden, values }) => {
    const texts = values.map(({ value, instances }) => {
      return `${isHidden ? 'shown with the operator token' : (value ?? 'not set')} (${instances.join(', ')})`;
    });
    return `${aspect}${name === '' ? '' : ` ${name}`} differ: ${texts.join('; ')}`;
  });
  return omittedDifferences === 0 ? lines : [...lines, `${counted(omittedDifferences, 'other setting')} differ`];
}
