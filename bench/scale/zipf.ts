/**
 * Draws numbers from 0 on with a Zipf distribution, number k with a probability in proportion to 1/(k + 1)^exponent, by
 * Walker's alias method: one table, and one draw in constant time.
 */
export class Zipf {
  readonly #size: number;
  /** For each number, the probability to stay with it; otherwise its alias is drawn. */
  readonly #stays: Float64Array;
  readonly #aliases: Uint32Array;

  constructor(size: number, exponent: number) {
    const weights = Float64Array.from({ length: size }, (_, index) => (index + 1) ** -exponent);
    const sum = weights.reduce((one, other) => one + other);
    this.#size = size;
    this.#stays = weights.map((weight) => (weight / sum) * size);
    this.#aliases = new Uint32Array(size);
    // The probabilities fall: each of the last numbers is filled up by one of the first that still has more than its
    // part.
    const first = this.#stays.findIndex((stays) => stays < 1);
    const takers = Array.from({ length: size - first }, (_, index) => first + index);
    for (let giver = 0; giver < first && takers.length > 0;) {
      const taker = takers.pop()!;
      this.#aliases[taker] = giver;
      this.#stays[giver]! -= 1 - this.#stays[taker]!;
      if (this.#stays[giver]! >= 1) continue;
      takers.push(giver);
      giver += 1;
    }
    // What is left differs from 1 by rounding only.
    for (const taker of takers) this.#stays[taker] = 1;
  }

  /** @param random from 0 to 1 */
  draw(random: number): number {
    const scaled = random * this.#size;
    const index = Math.floor(scaled);
    return scaled - index < this.#stays[index]! ? index : this.#aliases[index]!;
  }
}
