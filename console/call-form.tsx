import { useMemo, useState } from 'preact/hooks';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { useAnswer } from './api';
import { live } from './live-events';
import { Field, Select } from './parts';
import { descriptorOf, writtenDescriptor } from './request';
import { useStore } from './store';

interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The keys of a path of rules, and for each key the values that rules name. */
type Path = readonly { readonly key: string; readonly values: Set<string> }[];

/** A call as it is written in a form. */
export interface WrittenCall {
  readonly domain: string;
  /** Descriptors, one per line. */
  readonly lines: string;
}

/** The state of a form of a call, and its fields: the domain, the keys of its rules, and a value for each. */
export function useCall(first: WrittenCall) {
  const [call, setCall] = useState(first);
  const [descriptor = '', ...others] = call.lines.split('\n');
  const version = useStore(live).event?.loaded?.at;
  // Of rules that differ in their values only, some are offered.
  const { value } = useAnswer<RulesAnswer>('rules?perKey=50', { version });
  const domains = useMemo(() => new Map(value?.domains.map((each) => [each.domain, each.descriptors])), [value]);
  const paths = useMemo(() => pathsOf(domains.get(call.domain) ?? []), [domains, call.domain]);
  const entries = entriesOf(descriptor);
  const name = nameOf(entries);
  const path = paths.get(name);
  function write(changed: readonly Entry[]): void {
    const text = changed.length === 0 ? '' : writtenDescriptor({ entries: changed });
    setCall({ ...call, lines: [text, ...others].join('\n') });
  }
  function chooseKeys(keys: string): void {
    write((paths.get(keys) ?? []).map(({ key, values }) => ({ key, value: values.size === 1 ? [...values][0]! : '' })));
  }
  const names = ['', ...new Set([...domains.keys(), call.domain])].map((each) => [each, each || 'choose…'] as const);
  const keys = [['', 'as written below'], ...[...paths.keys()].map((each) => [each, each] as const)] as const;
  const fields = (
    <>
      <Select
        label="Domain"
        required
        options={names}
        value={call.domain}
        onText={(domain) => setCall({ ...call, domain })}
      />
      {paths.size > 0 && (
        <Select label="Keys" options={keys} value={path === undefined ? '' : name} onText={chooseKeys} />
      )}
      {path?.map(({ key, values }, index) => (
        <Field
          key={`${name} ${index}`}
          label={key}
          value={entries[index]!.value}
          offered={[...values]}
          onText={(text) => write(entries.with(index, { key, value: text }))}
        />
      ))}
    </>
  );
  return { ...call, setLines: (lines: string) => setCall({ ...call, lines }), fields };
}

function nameOf(entries: readonly { readonly key: string }[]): string {
  return entries.map(({ key }) => key).join(', ');
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
function pathsOf(
  rules: readonly NestedRule[],
  above: readonly NestedRule[] = [],
  paths = new Map<string, Path>(),
): ReadonlyMap<string, Path> {
  for (const rule of rules) {
    const all = [...above, rule];
    const name = nameOf(all);
    const path = paths.get(name) ?? all.map(({ key }) => ({ key, values: new Set<string>() }));
    if (rule.limit !== null) {
      paths.set(name, path);
      for (const [index, { value, valueIn }] of all.entries()) {
        for (const each of valueIn ?? [value]) if (!/^$|\*/.test(each)) path[index]!.values.add(each);
      }
    }
    pathsOf(rule.descriptors, all, paths);
  }
  return paths;
}
