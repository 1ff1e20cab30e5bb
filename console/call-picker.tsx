import { useMemo } from 'preact/hooks';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { useAnswer } from './api';
import { live } from './live-events';
import { descriptorOf, writtenDescriptor } from './request';
import { addressOf } from './route';
import { useStore } from './store';
import { Text } from './text';

interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The keys of a path of rules, and for each key the values that rules name. */
type Path = readonly { readonly key: string; readonly values: ReadonlySet<string> }[];

/** Values and paths that are offered; more would delay the page. */
const MOST_OFFERED = 200;

interface PickerProps {
  readonly domain: string;
  /** A descriptor as it is written. */
  readonly descriptor: string;
  readonly onPick: (domain: string, descriptor: string) => void;
}

/** Chooses a domain and the keys of its rules, so that only values are left to be written. */
export function CallPicker({ domain, descriptor, onPick }: PickerProps) {
  const loadedAt = useStore(live).event?.loaded?.at;
  const { value, error } = useAnswer<RulesAnswer>('rules', loadedAt);
  const domains = useMemo(() => new Map(value?.domains.map((each) => [each.domain, each.descriptors])), [value]);
  const paths = useMemo(() => pathsOf(domains.get(domain) ?? []), [domains, domain]);
  const entries = entriesOf(descriptor);
  const name = nameOf(entries.map(({ key }) => key));
  const path = paths.get(name);
  return (
    <>
      <label>
        <span>Domain</span>{' '}
        {error !== undefined && value === undefined ? (
          <input required value={domain} onInput={(event) => onPick(event.currentTarget.value, descriptor)} />
        ) : (
          <select required value={domain} onInput={(event) => onPick(event.currentTarget.value, descriptor)}>
            {['', ...new Set([...domains.keys(), domain])].map((each) => (
              <option key={each} value={each}>
                {each === '' ? 'choose…' : each}
              </option>
            ))}
          </select>
        )}
      </label>
      {paths.size > 0 && (
        <label>
          <span>Keys</span>{' '}
          <select
            value={path === undefined ? '' : name}
            onInput={(event) => {
              const keys = paths.get(event.currentTarget.value) ?? [];
              onPick(
                domain,
                written(keys.map(({ key, values }) => ({ key, value: values.size === 1 ? [...values][0]! : '' }))),
              );
            }}
          >
            <option value="">as written below</option>
            {[...paths.keys()].map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      )}
      {path?.map(({ key, values }, index) => (
        <label key={`${name} ${index}`}>
          <span>{key}</span>{' '}
          <input
            value={entries[index]!.value}
            list={`values-${index}`}
            onInput={(event) => {
              const changed = { key, value: event.currentTarget.value };
              onPick(domain, written(entries.map((entry, place) => (place === index ? changed : entry))));
            }}
          />
          <datalist id={`values-${index}`}>
            {[...values].map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </label>
      ))}
    </>
  );
}

/** The callers that were limited most lately, each linked to its explanation. */
export function RecentCalls() {
  const { event } = useStore(live);
  if (event === undefined) return <></>;
  const { offenders } = event;
  return (
    <>
      <div class="head line">
        <h3>Callers limited lately</h3>
      </div>
      {offenders === null || offenders.length === 0 ? (
        <p class="empty">
          {offenders === null ? 'They are shown with the operator token.' : 'None.'} Calls within their limits are not
          recorded.
        </p>
      ) : (
        offenders.map(({ domain, rule, descriptor }) => (
          <p key={`${domain} ${rule} ${descriptor}`} class="entry">
            <a href={addressOf('explain', { domain, descriptor })}>
              <Text text={`${domain}: ${descriptor}`} />
            </a>
          </p>
        ))
      )}
    </>
  );
}

function nameOf(keys: readonly string[]): string {
  return keys.join(', ');
}

function written(entries: readonly Entry[]): string {
  return entries.length === 0 ? '' : writtenDescriptor({ entries });
}

/** None, while it is not written to its end. */
function entriesOf(descriptor: string): readonly Entry[] {
  try {
    return (descriptorOf(descriptor) as { readonly entries?: readonly Entry[] }).entries ?? [];
  } catch {
    return [];
  }
}

/** The paths to rules with a limit, by their keys. */
function pathsOf(rules: readonly NestedRule[]): ReadonlyMap<string, Path> {
  const paths = new Map<string, { key: string; values: Set<string> }[]>();
  function add(nested: readonly NestedRule[], above: readonly NestedRule[]): void {
    for (const rule of nested) {
      const all = [...above, rule];
      const name = nameOf(all.map(({ key }) => key));
      if (rule.limit !== null && (paths.has(name) || paths.size < MOST_OFFERED)) {
        const path = paths.get(name) ?? all.map(({ key }) => ({ key, values: new Set<string>() }));
        for (const [index, { value, valueIn }] of all.entries()) {
          const { values } = path[index]!;
          for (const each of valueIn ?? [value])
            if (values.size < MOST_OFFERED && !/^$|\*/.test(each)) values.add(each);
        }
        paths.set(name, path);
      }
      add(rule.descriptors, all);
    }
  }
  add(rules, []);
  return paths;
}
