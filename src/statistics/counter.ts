/** A number that only grows, from the start of the process. Read and added to directly: it sits on the decision path. */
export class Counter {
  value = 0;

  constructor(readonly name: string) {}

  add(amount: number): void {
    this.value += amount;
  }
}
