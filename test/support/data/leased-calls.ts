import { request } from './requests';
import type { TestService } from './service';

/** Calls a descriptor 200 times a second for 0.4 s, 80 times in all, so that hits of its limit are leased. */
export function callOften(service: TestService, text = 'k=x'): void {
  for (let round = 0; round < 40; round += 1) {
    service.now += 10;
    service.decideTogether(request('shop', [text]), request('shop', [text]));
  }
}

/** The statistics of its leases. */
export function leasedBy({
  statistics,
}: TestService): Readonly<Record<'granted' | 'used' | 'returned' | 'unused', number>> {
  function valueOf(name: string): number {
    return statistics.counter(`ratelimit.lease.${name}`).value;
  }
  const [granted, used, returned, unused] = [
    valueOf('granted'),
    valueOf('used'),
    valueOf('returned'),
    valueOf('unused'),
  ];
  return { granted, used, returned, unused };
}

/** The hits that it holds. */
export function heldBy(service: TestService): number {
  const { granted, used, returned, unused } = leasedBy(service);
  return granted - used - returned - unused;
}
