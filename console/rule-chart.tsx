import { Fragment } from 'preact';
import type { LimitOfCounter } from '../src/explain/explanation';
import { windowLabel } from '../src/rules/unit';
import { Chart, outcomeLines } from './chart';
import { useFleet, useHistory } from './fleet-answer';

interface RuleChartProps {
  readonly statisticsKey: string;
  /** The limits of a rule that has several: each has a statistics key of its own. */
  readonly limits?: readonly Pick<LimitOfCounter, 'unit' | 'unitMultiplier'>[];
}

/** The hits of a rule over the last hour, if it is one of the busiest. */
export function RuleChart({ statisticsKey, limits = [] }: RuleChartProps) {
  const { value: history } = useHistory();
  const isFleet = useFleet() !== undefined;
  const others = isFleet ? '; of other instances, only their two busiest rules are known' : '';
  const ofLimits = limits.map(({ unit, unitMultiplier }) => `${statisticsKey}.${windowLabel(unit, unitMultiplier)}`);
  const keys = limits.length < 2 ? [statisticsKey] : ofLimits;
  if (history === undefined) return <></>;
  const known = history.rules.filter((rule) => keys.includes(rule.statisticsKey));
  if (known.length === 0) {
    const text = `No chart: in the last hour, the rule had no hits, or was not one of the 50 with the most${others}.`;
    return <p class="empty">{text}</p>;
  }
  return (
    <>
      {known.map(({ statisticsKey: key, hits, over }) => {
        const title = `${key}, hits per second`;
        const lines = outcomeLines(['hits', 'over limit'], hits, over);
        return (
          <Fragment key={key}>
            <p class="small quiet pad">{(keys.length > 1 ? title : 'Hits per second') + others}</p>
            <Chart label={title} history={history} height={190} lines={lines} />
          </Fragment>
        );
      })}
    </>
  );
}
