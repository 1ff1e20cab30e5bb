import { useMemo } from 'preact/hooks';
import type { LimitOfCounter } from '../src/explain/explanation';
import type { History } from '../src/operators/live-answers';
import { windowLabel } from '../src/rules/unit';
import { Chart } from './chart';
import { useHistory } from './history';

type Limit = Pick<LimitOfCounter, 'unit' | 'unitMultiplier'>;

interface RuleChartProps {
  readonly statisticsKey: string;
  /** The limits of a rule that has several: each has a statistics key of its own. */
  readonly limits?: readonly Limit[];
}

/** The hits of a rule over the last hour, if it is one of the busiest. */
export function RuleChart({ statisticsKey, limits = [] }: RuleChartProps) {
  const { value: history } = useHistory();
  const keys =
    limits.length < 2
      ? [statisticsKey]
      : limits.map(({ unit, unitMultiplier }) => `${statisticsKey}.${windowLabel(unit, unitMultiplier)}`);
  const known = history?.rules.filter((rule) => keys.includes(rule.statisticsKey)) ?? [];
  if (history === undefined) return <></>;
  if (known.length === 0) {
    return <p class="hint">No chart: the rule is not one of the 50 with the most hits in the last hour.</p>;
  }
  return (
    <>
      {known.map((rule) => (
        <Lines key={rule.statisticsKey} history={history} rule={rule} />
      ))}
    </>
  );
}

function Lines({ history, rule }: { readonly history: History; readonly rule: History['rules'][number] }) {
  const lines = useMemo(
    () => [
      { name: 'hits', values: rule.hits },
      { name: 'over the limit', values: rule.over },
    ],
    [rule],
  );
  return <Chart title={rule.statisticsKey} unit="hits per second" history={history} lines={lines} />;
}
