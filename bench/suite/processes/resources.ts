/** Resources that are disposed of together, the last one first. */
export class Resources implements AsyncDisposable {
  readonly #disposals: (() => unknown)[] = [];

  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  defer(dispose: () => unknown): void {
    this.#disposals.unshift(dispose);
  }

  /** Calls back with new resources, which are disposed of when that fails. */
  static async acquire<T>(make: (resources: Resources) => Promise<T>): Promise<T> {
    const resources = new Resources();
    try {
      return await make(resources);
    } catch (error) {
      await resources[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const dispose of this.#disposals.splice(0)) await dispose();
  }
}
