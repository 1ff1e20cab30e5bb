import type { FleetDifference, FleetInstance } from '../src/operators/live-answers';
import { nameOf, scopeOf } from './fleet-answer';
import { Card, CopyButton } from './parts';
import { Text, counted } from './text';

/** From this number of instances on, only odd ones have a column. */
const MOST_COLUMNS = 12;

const NAMES: Readonly<Record<FleetDifference['aspect'], string>> = {
  rules: 'Rules',
  version: 'Version of weir',
  settings: '',
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

interface MatrixProps {
  readonly differences: readonly FleetDifference[];
  readonly omitted: number;
  readonly instances: readonly FleetInstance[];
}

/** What differs, for each instance: as most have it, or what it has instead. */
export function Matrix({ differences, omitted, instances }: MatrixProps) {
  const answering = instances.filter(({ problem, health }) => problem === null && health !== null);
  const columns = answering.length < MOST_COLUMNS ? answering : oddOnes(answering);
  const odd = differences.filter(({ isExpected }) => !isExpected);
  const expected = differences.filter(({ isExpected }) => isExpected);
  return (
    <Card
      title="What differs"
      columns={8}
      note="= as most have, ≠ not"
      end={<CopyButton text={asText(differences)} label="Copy" />}
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="What differs between instances">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Most have</th>
              {columns.map((instance) => (
                <th key={scopeOf(instance)} scope="col" class={instance.differs.length > 0 ? 'is-odd' : 'wide'}>
                  <Text text={nameOf(instance)[0]} />
                  <span class="sub">
                    <Text text={nameOf(instance)[1]} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {odd.map((difference) => (
              <Row key={`${difference.aspect} ${difference.name}`} difference={difference} columns={columns} />
            ))}
            {expected.length > 0 && (
              <tr class="group">
                <th scope="rowgroup" colSpan={columns.length + 2}>
                  May differ: by their meaning, or by OPERATOR_EXPECTED_DIFFERENCES
                </th>
              </tr>
            )}
            {expected.map((difference) => (
              <Row key={difference.name} difference={difference} columns={columns} />
            ))}
          </tbody>
        </table>
      </div>
      {omitted > 0 && <p class="foot">{counted(omitted, 'further setting')} differ.</p>}
    </Card>
  );
}

function Row({
  difference,
  columns,
}: {
  readonly difference: FleetDifference;
  readonly columns: readonly FleetInstance[];
}) {
  const { aspect, name, values, isExpected } = difference;
  // Where each has its own value, most have none.
  const most = values[0]!.instances.length > 1 || values.length === 2 ? values[0] : undefined;
  return (
    <tr class={isExpected ? 'expected' : ''}>
      <th scope="row" class={aspect === 'settings' ? 'mono' : ''}>
        <Text text={`${NAMES[aspect]}${name}`} />
      </th>
      <td class="mono">
        <Text text={most === undefined ? 'none in common' : valueText(difference, most.value)} />
      </td>
      {columns.map((instance) => {
        const own = values.find(({ instances }) => instances.includes(labelIn(difference, instance)));
        const isOdd = instance.differs.length > 0;
        return own === most || own === undefined ? (
          <td key={scopeOf(instance)} class={`same ${isOdd ? '' : 'wide'}`}>
            <span aria-hidden="true">=</span>
            <span class="hidden">the same</span>
          </td>
        ) : (
          <td key={scopeOf(instance)} class={isExpected ? `mono ${isOdd ? '' : 'wide'}` : 'differing mono'}>
            <span class={isExpected ? '' : 'unequal'}>
              {!isExpected && '≠ '}
              <Text text={valueText(difference, own.value)} />
            </span>
          </td>
        );
      })}
    </tr>
  );
}

function valueText({ aspect, isHidden }: FleetDifference, value: string | null): string {
  return value ?? (isHidden ? 'needs the token' : aspect === 'settings' ? 'not set' : 'none');
}

/** How a difference names an instance: where others have the same name, with its address. */
function labelIn({ values }: FleetDifference, { name, address }: FleetInstance): string {
  const whole = `${name} (${address})`;
  return values.some(({ instances }) => instances.includes(whole)) ? whole : String(name);
}

function asText(differences: readonly FleetDifference[]): string {
  return differences
    .map((difference) => {
      const { aspect, name, values } = difference;
      const lines = values.map(({ value, instances }) => `  ${valueText(difference, value)}: ${instances.join(', ')}`);
      return [`${NAMES[aspect]}${name}`, ...lines].join('\n');
    })
    .join('\n');
}
