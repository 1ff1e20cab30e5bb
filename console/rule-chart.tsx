import { Fragment } from 'preact';
import type { LimitOfCounter } from '../src/explain/explanation';
import type { History } from '../src/operators/live-answers';
import { windowLabel } from '../src/rules/unit';
import { Chart } from './chart';
import { useHistory } from './fleet-answer';
import type { Series } from './history';

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
  if (history === undefined) return <></>;
  const known = history.rules.filter((rule) => keys.includes(rule.statisticsKey));
  if (known.length === 0) {
    return <p class="empty">No chart: the rule is not one of the 50 with the most hits in the last hour.</p>;
  }
  return (
    <>
      {known.map((rule) => (
        <Fragment key={rule.statisticsKey}>
          {keys.length > 1 && <p class="small quiet pad">{rule.statisticsKey}, hits per second</p>}
          <Lines history={history} rule={rule} />
        </Fragment>
      ))}
    </>
  );
}

function Lines({
  history,
  rule: { statisticsKey, hits, over },
}: {
  readonly history: History;
  readonly rule: History['rules'][number];
}) {
  const passed: Series = hits.map((value, index) => (value === null ? null : value - (over[index] ?? 0)));
  return (
    <Chart
      label={`${statisticsKey}, hits per second`}
      history={history}
      height={190}
      lines={[
        { name: 'passed', values: passed, tone: 'pass', isArea: true },
        { name: 'limited', values: over, tone: 'over' },
      ]}
    />
  );
}
