import { type OperatorFunction, defer, filter, map } from 'rxjs';
import type { RuleEvent } from '../../streams/ports/rule-source';

/** The result of one scan, as far as {@link reportChanges} needs it. */
export interface ReportableScan {
  /** Equal for two scans that found the same rules, or the same errors. */
  readonly key: string;
  /** Equal for two scans between which nothing happened that counts as a load. */
  readonly state: string;
  /** What the scan found. */
  readonly event: RuleEvent;
}

/**
 * The event of each scan that differs from the one before. When only the state differs, the event is marked as repeated.
 * Completes and fails with the source.
 */
export function reportChanges(): OperatorFunction<ReportableScan, RuleEvent> {
  return (scans$) =>
    defer(() => {
      let last: ReportableScan | undefined;
      return scans$.pipe(
        filter(({ key, state }) => key !== last?.key || state !== last.state),
        map((scan): RuleEvent => {
          const isRepeated = scan.key === last?.key;
          last = scan;
          return isRepeated ? { ...scan.event, isRepeated } : scan.event;
        }),
      );
    });
}
