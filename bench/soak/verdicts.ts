import { FLAT, type SoakReport } from './soak-report';

/** What the soak has to show, each with whether it does. */
export function verdictsOf(report: SoakReport): readonly (readonly [statement: string, holds: boolean])[] {
  const { calls, heap, resident } = report;
  return [
    ['no wrong count', report.wrongCounts === 0 && report.malformed === 0],
    ['no call failed otherwise', report.failedOtherwise === 0],
    ['every call was answered or failed', calls.unanswered === 0 && calls.sent === calls.answered + calls.failed],
    ['no open call is left', report.openCalls === 0],
    [`the heap is flat: it grew by at most ${FLAT.heap * 100} %`, heap.growth <= FLAT.heap],
    [`resident memory is flat: it grew by at most ${FLAT.resident * 100} %`, resident.growth <= FLAT.resident],
  ];
}
