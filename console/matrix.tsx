import type { Fleet, FleetDifference, FleetInstance } from '../src/operators/live-answers';
import { nameOf } from './fleet-answer';
import { Card, type Cell, CopyButton, Table, type TableRow } from './parts';
import { counted, shown } from './text';

/** From this number of instances on, only odd ones have a column. */
const MOST_COLUMNS = 12;

const NAMES: Readonly<Record<FleetDifference['aspect'], string>> = {
  ...{ rules: 'Rules', version: 'Version of weir', settings: '' },
};

/** The instances that are not as most are. */
export function oddOnes(instances: readonly FleetInstance[]): readonly FleetInstance[] {
  return instances.filter(({ problem, differs }) => problem === null && differs.length > 0);
}

/** `2 other settings`. */
export function settingsText(differences: readonly FleetDifference[]): string {
  const settings = differences.filter(({ aspect, isExpected }) => aspect === 'settings' && !isExpected).length;
  return settings === 0 ? '' : counted(settings, 'other setting');
}

/** What differs, for each instance: as most have it, or what it has instead. */
export function Matrix({ fleet }: { readonly fleet: Fleet }) {
  const { differences, omittedDifferences: omitted, instances } = fleet;
  const answering = instances.filter(({ problem, health }) => problem === null && health !== null);
  const columns = answering.length < MOST_COLUMNS ? answering : oddOnes(answering);
  const expected = differences.filter(({ isExpected }) => isExpected);
  const odd = differences.filter(({ isExpected }) => !isExpected);
  const text = 'May differ: by their meaning, or by OPERATOR_EXPECTED_DIFFERENCES';
  const title = { key: '', kind: 'group', cells: [{ kind: '', span: columns.length + 2, content: text }] };
  const rows = [...odd, ...expected].map((each) => rowOf(each, columns));
  return (
    <Card
      title="What differs"
      columns={8}
      note="= as most have, ≠ not"
      end={<CopyButton text={differences.map(asText).join('\n')} label="Copy" />}
    >
      <Table
        title="What differs"
        kind="matrix"
        columns={['What', 'Most have', ...columns.map(columnOf)]}
        rows={expected.length === 0 ? rows : rows.toSpliced(odd.length, 0, title)}
      />
      {omitted > 0 && <p class="foot">{counted(omitted, 'further setting')} differ.</p>}
    </Card>
  );
}

function columnOf(instance: FleetInstance): Cell {
  const [name, address] = nameOf(instance);
  const content = [shown(name), <span class="sub">{shown(address)}</span>];
  return { kind: instance.differs.length > 0 ? 'is-odd' : 'wide', content };
}

function rowOf(difference: FleetDifference, columns: readonly FleetInstance[]): TableRow {
  const { aspect, name, values, isExpected } = difference;
  // Where each has its own value, most have none.
  const most = values[0]!.instances.length > 1 || values.length === 2 ? values[0] : undefined;
  const same = [<span aria-hidden="true">=</span>, <span class="hidden">the same</span>];
  const cells = columns.map((instance): Cell => {
    const own = values.find(({ instances }) => instances.includes(labelIn(difference, instance)));
    const wide = instance.differs.length > 0 ? '' : 'wide';
    if (own === most || own === undefined) return { kind: `same ${wide}`, content: same };
    const value = shown(valueText(difference, own.value));
    if (isExpected) return { kind: `mono ${wide}`, content: value };
    return { kind: `differing mono ${wide}`, content: <span class="unequal">≠ {value}</span> };
  });
  return {
    key: `${aspect} ${name}`,
    kind: isExpected ? 'expected' : undefined,
    cells: [
      { kind: aspect === 'settings' ? 'mono' : '', content: NAMES[aspect] + name },
      { kind: 'mono', content: most === undefined ? 'none in common' : valueText(difference, most.value) },
      ...cells,
    ],
  };
}

function valueText({ aspect, isHidden }: FleetDifference, value: string | null): string {
  return value ?? (isHidden ? 'needs the token' : aspect === 'settings' ? 'not set' : 'none');
}

/** How a difference names an instance: where others have the same name, with its address. */
function labelIn({ values }: FleetDifference, { name, address }: FleetInstance): string {
  const whole = `${name} (${address})`;
  return values.some(({ instances }) => instances.includes(whole)) ? whole : String(name);
}

function asText(difference: FleetDifference): string {
  const { aspect, name, values } = difference;
  const lines = values.map(({ value, instances }) => `  ${valueText(difference, value)}: ${instances.join(', ')}`);
  return [NAMES[aspect] + name, ...lines].join('\n');
}
